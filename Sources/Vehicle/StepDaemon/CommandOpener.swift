import Domain
import MQTT
import StepController
import StepProtocol
import Synchronization
import SystemIO

/// Takes events from a link and opens riders' commands, on a separate thread. So a stranger's messages cost the loop
/// nothing, and one device cannot use up another device's turn.
///
/// The sender is unknown until a message is decrypted. After that everything is bounded: the messages of each device
/// (`DeviceAllowance`), and those that wait for the loop. While too many wait, nothing is taken from the link.
final class CommandOpener: Sendable {
  enum Arrival: Sendable {
    /// Any event that is not a command for a step.
    case event(MQTTConnection.Event)
    case request(Request)
    /// Messages that the controller does not see. The step and the reason are those of the first message.
    case ignored(StepID, Reason, count: Int)
    /// The link can no longer be used.
    case failed(any Error)
  }

  enum Reason: Sendable, Equatable {
    case notRiders(ProtocolError)
    /// The rider sends too much. The name is the operator's name for the rider.
    case excess(rider: String)
  }

  /// The number of arrivals that may wait for the loop.
  private static let capacity = 64

  let arrivals: Mailbox<Arrival>
  private let link: any CommandLink
  private let screen: CommandScreen
  private let waiting = Atomic(0)
  private let room: Wakeup
  private let end: Interruption
  private let isEnding = Atomic(false)
  /// The new operator keys, until the thread has taken them.
  private let trusted = Mutex<[VerificationKey]?>(nil)

  /// Starts the thread, which runs until `close`.
  ///
  /// - Parameters:
  ///   - screen: the link's screen, or one that the link does not ask. A message that the screen would refuse is
  ///     refused here too.
  ///   - decryption: the controller's key.
  ///   - operatorKeys: the keys that may sign tokens at first.
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

  /// Must be called for each arrival that the loop has taken.
  func taken() {
    if waiting.subtract(1, ordering: .relaxed).oldValue >= Self.capacity { room.signal() }
  }

  /// From now on only these keys may sign tokens.
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

/// The state of the thread: which tokens are valid, how much each device has sent, and which ignored messages are still
/// unreported.
private struct OpenerState: Sendable {
  private let screen: CommandScreen
  private var reader: CommandReader
  private var allowance: DeviceAllowance
  private var excess = IgnoredMessages()

  init(_ screen: CommandScreen, _ reader: CommandReader, _ allowance: DeviceAllowance) {
    (self.screen, self.reader, self.allowance) = (screen, reader, allowance)
  }

  mutating func trust(_ operatorKeys: [VerificationKey]) { reader.trust(operatorKeys) }

  /// - Returns: nil if the loop need not see the event.
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
  var due: Instant? { [screen.due, excess.due].compactMap(\.self).min() }

  /// The reports that are due now.
  mutating func ignored() -> [CommandOpener.Arrival] {
    let now = Instant.now
    return [screen.report(at: now), excess.report(at: now)].compactMap(\.self)
  }
}

/// How much each device may send. The limit is above the rate of any program that waits for answers, and low enough
/// that answering takes a twentieth of a processor.
struct DeviceAllowance: Sendable {
  static let perSecond = 250
  /// How many messages may come at once.
  static let burst = 500

  private let interval: Duration
  private let burst: Int
  /// For each device, the time up to which its allowance is used.
  private var until: [VerificationKey: Instant] = [:]

  init(perSecond: Int = DeviceAllowance.perSecond, burst: Int = DeviceAllowance.burst) {
    interval = .seconds(1) / perSecond
    self.burst = burst
  }

  mutating func admits(_ device: VerificationKey, at now: Instant) -> Bool {
    let used = max(until[device] ?? now, now)
    guard used - now <= interval * (burst - 1) else { return false }
    until[device] = used + interval
    // Only devices with an operator's token get here, so there are few.
    if until.count > 1024 { until = until.filter { $0.value > now } }
    return true
  }
}
