import Domain
import MQTT
import StepController
import StepProtocol
import Synchronization
import SystemIO

/// Takes what comes over a link, on a thread of its own, and opens riders' commands there: what a stranger sends costs
/// the loop nothing, and what one device sends takes no other device's turn.
///
/// Until a message is decrypted nobody can tell whose it is. Everything behind that is bounded: what one device may
/// send (`DeviceAllowance`), and what waits for the loop. While too much does, nothing more is taken from the link.
final class CommandOpener: Sendable {
  enum Arrival: Sendable {
    /// Whatever is no command for a step.
    case event(MQTTConnection.Event)
    case request(Request)
    /// Messages that the controller does not see; the step and the reason are the first one's.
    case ignored(StepID, Reason, count: Int)
    /// The link is of no use any more.
    case failed(any Error)
  }

  enum Reason: Sendable, Equatable {
    case notRiders(ProtocolError)
    /// The rider sends too much. The name is the operator's for the rider.
    case excess(rider: String)
  }

  /// Arrivals that may wait for the loop.
  private static let capacity = 64

  let arrivals: Mailbox<Arrival>
  private let link: any CommandLink
  private let screen: CommandScreen
  private let waiting = Atomic(0)
  private let room: Wakeup
  private let end: Interruption
  private let isEnding = Atomic(false)
  /// The operator's keys that count from now on, until the thread has taken them.
  private let trusted = Mutex<[VerificationKey]?>(nil)

  /// Starts the thread, which goes on until `close`.
  ///
  /// - Parameters:
  ///   - screen: the link's, or one that the link does not ask: what it would refuse is refused here too.
  ///   - decryption: the controller's.
  ///   - operatorKeys: those that tokens may be signed by at first.
  init(
    _ link: any CommandLink, _ screen: CommandScreen, decryption: DecryptionKey, operatorKeys: [VerificationKey],
    allowance: DeviceAllowance = DeviceAllowance()
  ) throws {
    arrivals = try Mailbox()
    room = try Wakeup()
    end = try Interruption.manual()
    self.link = link
    self.screen = screen
    let opening = OpenerState(
      screen, CommandReader(controller: decryption, operatorKeys: operatorKeys), allowance)
    try DetachedThread.start { self.run(opening) }
  }

  /// To be called for each arrival that the loop has taken.
  func taken() {
    if waiting.subtract(1, ordering: .relaxed).oldValue >= Self.capacity { room.signal() }
  }

  /// From here on tokens may be signed by these keys, and by no others.
  func trust(_ operatorKeys: [VerificationKey]) { trusted.withLock { $0 = operatorKeys } }

  /// Ends the thread.
  func close() {
    isEnding.store(true, ordering: .relaxed)
    end.interrupt()
  }

  private func run(_ start: OpenerState) {
    var opening = start
    do {
      while let ready = try? waitReadable([link.descriptor, end.number, screen.refusal.number], until: opening.due),
        !ready[1]
      {
        if ready[2] { screen.refusal.clear() }
        var event: MQTTConnection.Event?
        repeat {
          event = try link.next()
          if let keys = trusted.withLock({ $0.take() }) { opening.trust(keys) }
          if let event, let arrival = opening.open(event) { post(arrival) }
          for arrival in opening.ignored() { post(arrival) }
          waitForRoom()
        } while event != nil && !isEnding.load(ordering: .relaxed)
      }
    } catch {
      post(.failed(error))
    }
  }

  private func post(_ arrival: Arrival) {
    waiting.add(1, ordering: .relaxed)
    arrivals.post(arrival)
  }

  private func waitForRoom() {
    while waiting.load(ordering: .relaxed) >= Self.capacity, !isEnding.load(ordering: .relaxed) {
      _ = try? waitReadable([room.number, end.number], until: nil)
      room.clear()
    }
  }
}

/// What the thread knows: whose tokens are good, who has sent how much, and which ignored messages are not reported
/// yet.
private struct OpenerState: Sendable {
  private let screen: CommandScreen
  private var reader: CommandReader
  private var allowance: DeviceAllowance
  private var excess = IgnoredMessages()

  init(_ screen: CommandScreen, _ reader: CommandReader, _ allowance: DeviceAllowance) {
    (self.screen, self.reader, self.allowance) = (screen, reader, allowance)
  }

  mutating func trust(_ operatorKeys: [VerificationKey]) { reader.trust(operatorKeys) }

  /// - Returns: nil for what the loop need not see.
  mutating func open(_ event: MQTTConnection.Event) -> CommandOpener.Arrival? {
    guard case .message(let message) = event, let step = screen.steps[message.topic] else { return .event(event) }
    var rider = ""
    let command = reader.read(message.payload) { token in
      rider = token.subject
      return allowance.admits(token.device, at: .now)
    }
    switch command {
    case .unauthenticated(let fault)?:
      screen.refuse(step, fault)
      return nil
    case nil:
      excess.add(step, .excess(rider: rider))
      return nil
    case let command?:
      return .request(Request(message.payload, on: step, isRetained: message.isRetained, command: command))
    }
  }

  /// When the next report of ignored messages is due.
  var due: ContinuousClock.Instant? { [screen.due, excess.due].compactMap(\.self).min() }

  /// The reports that are due now.
  mutating func ignored() -> [CommandOpener.Arrival] {
    let now = ContinuousClock.now
    return [screen.report(at: now), excess.report(at: now)].compactMap(\.self)
  }
}

/// How much each device may send: more than any program that waits for answers does, and little enough that answering
/// costs a twentieth of a processor.
struct DeviceAllowance: Sendable {
  static let perSecond = 250
  /// What may come at once.
  static let burst = 500

  private let interval: Duration
  private let burst: Int
  /// Until when each device has used up its allowance.
  private var until: [VerificationKey: ContinuousClock.Instant] = [:]

  init(perSecond: Int = DeviceAllowance.perSecond, burst: Int = DeviceAllowance.burst) {
    interval = .seconds(1) / perSecond
    self.burst = burst
  }

  mutating func admits(_ device: VerificationKey, at now: ContinuousClock.Instant) -> Bool {
    let used = max(until[device] ?? now, now)
    guard used - now <= interval * (burst - 1) else { return false }
    until[device] = used + interval
    // Only devices with the operator's token come here, so there are not many.
    if until.count > 1024 { until = until.filter { $0.value > now } }
    return true
  }
}
