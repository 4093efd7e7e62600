package import Bluetooth
package import Domain
import Ranging
import SystemIO

/// Makes an adapter send the beacons of a plan, until it is closed.
///
/// The adapter is used on a separate thread, because an adapter that does not answer must not delay a motion. A lost
/// adapter is tried again, after half a second at first, and at most half a minute later on.
final class BeaconSender: Sendable {
  enum Event: Equatable, Sendable {
    /// The beacons are on the air.
    case sending
    /// The beacons are not, or no longer, on the air. The same reason is not reported twice in a row.
    case failed(RadioError)
  }

  let plan: BeaconPlan
  let events: Mailbox<Event>
  /// Ends the thread.
  let stop: Interruption
  private let ended: Wakeup

  /// Tries the adapter, and starts the thread, which keeps trying.
  ///
  /// - Throws: `BeaconError` if the problem will last while this process runs, else `SystemError`.
  init(_ plan: BeaconPlan) throws {
    self.plan = plan
    events = try Mailbox()
    stop = try Interruption.manual()
    ended = try Wakeup()
    let attempts = BeaconAttempts(plan, events, stop)
    do throws(RadioError) { try attempts.begin() } catch {
      if error.isLasting { throw BeaconError(cause: error) }
      attempts.tell(.failed(error))
    }
    try DetachedThread.start { [ended] in
      attempts.run()
      ended.signal()
    }
  }

  /// Takes the beacons off the air, and waits for that: 2 s at most, which a working controller never needs.
  func close() {
    stop.interrupt()
    _ = try? waitReadable([ended.number], until: .now + .seconds(2))
  }
}

/// Runs on the thread: puts a plan's beacons on the air, changes their minors on time, and tries again after a failure.
private final class BeaconAttempts {
  /// How long the same frames may be sent without writing them to the controller again, microseconds. Another program
  /// may have changed the controller's data, and the controller cannot report that.
  private static let longestRest: Int64 = 10_000_000

  private let plan: BeaconPlan
  private let events: Mailbox<BeaconSender.Event>
  private let stop: Interruption
  private var advertiser: Advertiser?
  private var begun = Instant.now
  private var lasted = Duration.zero
  private var backoff = Backoff()
  /// The last reported event.
  private var told: BeaconSender.Event?

  init(_ plan: BeaconPlan, _ events: Mailbox<BeaconSender.Event>, _ stop: Interruption) {
    (self.plan, self.events, self.stop) = (plan, events, stop)
  }

  func run() {
    while advertiser != nil || pause() {
      do throws(RadioError) {
        if advertiser == nil { try begin() }
        while try rest() { try advertiser?.update(frames) }
        break
      } catch {
        lasted = advertiser == nil ? .zero : begun.duration(to: .now)
        advertiser = nil
        tell(.failed(error))
      }
    }
    // Off the air before anybody is told that the thread has ended.
    advertiser = nil
  }

  private var frames: [IBeacon] { plan.frames(at: WallClock.seconds) }

  func begin() throws(RadioError) {
    advertiser = try plan.radio.advertise(frames, interruption: stop)
    begun = .now
    tell(.sending)
  }

  /// Waits until other frames are due.
  ///
  /// - Returns: false when the thread is to end.
  private func rest() throws(RadioError) -> Bool {
    let now = WallClock.microseconds
    let change = plan.change(after: now / 1_000_000) * 1_000_000
    let due = Instant.now + .microseconds(min(change - now, Self.longestRest))
    while true {
      guard let isReady = wait(advertiser?.descriptor, until: due) else { return false }
      if !isReady { return true }
      // A shared adapter also reports other programs' changes. Ignore those, or two copies of stepd would never stop.
      try advertiser?.check()
    }
  }

  /// Waits before the next attempt.
  ///
  /// - Returns: false when the thread is to end.
  private func pause() -> Bool {
    wait(nil, until: .now + backoff.next(afterLasting: lasted, chance: Double.random(in: 0...1))) != nil
  }

  /// - Returns: whether the descriptor is ready; nil when the thread is to end.
  private func wait(_ descriptor: Int32?, until deadline: Instant) -> Bool? {
    guard let ready = try? waitReadable([descriptor ?? -1, stop.number], until: deadline), !ready[1] else { return nil }
    return ready[0]
  }

  func tell(_ event: BeaconSender.Event) {
    if event == told || event == .failed(.interrupted) { return }
    told = event
    events.post(event)
  }
}

extension RadioError {
  /// Whether another attempt with the same adapter and configuration must fail again.
  fileprivate var isLasting: Bool {
    switch self {
    case .noLowEnergy, .notPermitted, .cannotAdvertise, .tooFewSets: true
    default: false
    }
  }
}

/// An adapter that cannot be a beacon, even after more attempts.
package struct BeaconError: Failure {
  package let cause: RadioError

  package var exitStatus: ExitStatus { cause.exitStatus }
  package var description: String { cause.description }

  package var hint: String? {
    // systemd's confinement may forbid a program what the file permissions allow.
    if case .notPermitted = cause { return "a service needs what the comments in stepd.service say" }
    return nil
  }
}
