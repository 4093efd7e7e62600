import Domain
import Glibc
import StepProtocol
import Synchronization
import SystemIO

/// Makes cheap checks of messages for the steps, on the connection's thread. A message that cannot be a command is not
/// copied and wakes no thread. `CommandOpener` reports the number of such messages a few times a second.
final class CommandScreen: Sendable {
  /// The steps by the topics of their commands.
  let steps: [String: StepID]
  /// Readable from the time when there is something to report until it is cleared.
  let refusal: Wakeup
  private let topics: [(name: [CChar], step: StepID)]
  private let refused = Mutex(IgnoredMessages())

  init(_ steps: [String: StepID]) throws(SystemError) {
    self.steps = steps
    topics = steps.map { (Array($0.key.utf8CString), $0.value) }
    refusal = try Wakeup()
  }

  /// `MQTTConnection.Screen`: true also for a message that is not on a step's topic.
  func admits(_ topic: UnsafePointer<CChar>, _ payload: UnsafeRawBufferPointer) -> Bool {
    guard let (_, step) = topics.first(where: { strcmp($0.name, topic) == 0 }),
      let fault = CommandReader.fault(of: payload)
    else { return true }
    refuse(step, fault)
    return false
  }

  /// Counts a message that no rider of this vehicle sent.
  func refuse(_ step: StepID, _ fault: ProtocolError) {
    refused.withLock { if $0.add(step, .notRiders(fault)) { refusal.signal() } }
  }

  /// When `report` is due.
  var due: Instant? { refused.withLock { $0.due } }

  func report(at now: Instant) -> CommandOpener.Arrival? { refused.withLock { $0.report(at: now) } }
}

/// Messages that the controller does not see, since the last report.
struct IgnoredMessages: Sendable {
  /// The shortest time between two reports.
  private static let interval = Duration.milliseconds(200)

  private var first: (step: StepID, reason: CommandOpener.Reason)?
  private var count = 0
  private var told = Instant.now - interval

  /// - Returns: whether this is the first message since the last report.
  @discardableResult
  mutating func add(_ step: StepID, _ reason: CommandOpener.Reason) -> Bool {
    count += 1
    guard first == nil else { return false }
    first = (step, reason)
    return true
  }

  /// When the next report is due; nil if there is nothing to report.
  var due: Instant? { first == nil ? nil : told + Self.interval }

  /// The report, if it is due.
  mutating func report(at now: Instant) -> CommandOpener.Arrival? {
    guard let (step, reason) = first, now - told >= Self.interval else { return nil }
    defer { (first, count, told) = (nil, 0, now) }
    return .ignored(step, reason, count: count)
  }
}
