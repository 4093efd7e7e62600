import Bluetooth
import Glibc
import Ranging
import SystemIO

/// The thread that puts a plan's beacons on the air, changes their minors on time, and begins again when it fails.
final class BeaconThread {
  /// How long the same frames may be sent without the controller being told again: it may have been told otherwise by
  /// somebody else, and has no way to say so.
  private static let longestRest: Int64 = 10_000_000

  private let sender: BeaconSender
  private let interruption: Interruption
  private var advertiser: Advertiser?
  private var begun = ContinuousClock.now
  private var lasted = Duration.zero
  private var backoff = Backoff()
  /// What was told last.
  private var told: BeaconSender.Event?

  private init(_ sender: BeaconSender, _ interruption: Interruption) {
    self.sender = sender
    self.interruption = interruption
  }

  /// Tries once, then starts the thread.
  ///
  /// - Throws: `RadioError` for what will not mend itself, else `SystemError`.
  static func start(_ sender: BeaconSender, _ interruption: Interruption) throws {
    let thread = BeaconThread(sender, interruption)
    do throws(RadioError) { try thread.begin() } catch {
      if error.isLasting { throw error }
      thread.tell(.failed(error))
    }
    try DetachedThread.start { thread.run() }
  }

  private func run() {
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
    // Off the air before anybody is told that it is.
    advertiser = nil
    sender.ended.signal()
  }

  private var frames: [IBeacon] { sender.plan.frames(at: WallClock.seconds) }

  private func begin() throws(RadioError) {
    advertiser = try sender.plan.radio.advertise(frames, interruption: interruption)
    begun = .now
    tell(.sending)
  }

  /// Waits until other frames are due.
  ///
  /// - Returns: false when it is to end.
  private func rest() throws(RadioError) -> Bool {
    let now = WallClock.microseconds
    let change = sender.plan.change(after: now / 1_000_000) * 1_000_000
    let due = ContinuousClock.now + .microseconds(min(change - now, Self.longestRest))
    while true {
      guard let ready = wait([advertiser?.descriptor ?? -1], until: due) else { return false }
      if !ready[0] { return true }
      // On a shared adapter also what others asked it: no reason to say anything, or two of us would never end.
      try advertiser?.check()
    }
  }

  /// Waits before the next attempt.
  ///
  /// - Returns: false when it is to end.
  private func pause() -> Bool {
    wait([], until: .now + backoff.next(afterLasting: lasted, chance: Double.random(in: 0...1))) != nil
  }

  /// - Returns: which descriptors are ready; nil when it is to end.
  private func wait(_ descriptors: [Int32], until deadline: ContinuousClock.Instant) -> ArraySlice<Bool>? {
    let ends = [sender.stop.number, interruption.number]
    guard let ready = try? waitReadable(descriptors + ends, until: deadline), !ready.suffix(2).contains(true)
    else { return nil }
    return ready.dropLast(2)
  }

  private func tell(_ event: BeaconSender.Event) {
    if event == told || event == .failed(.interrupted) { return }
    told = event
    sender.tell(event)
  }
}

extension RadioError {
  /// Whether trying again with the same adapter and the same configuration comes to the same.
  fileprivate var isLasting: Bool {
    switch self {
    case .noLowEnergy, .notPermitted, .cannotAdvertise, .tooFewSets: true
    default: false
    }
  }
}
