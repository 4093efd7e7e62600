import Domain
import MQTT
import StepController
import StepProtocol
import Synchronization
import SystemIO

/// Takes what comes over a link, on a thread of its own, and opens riders' commands there: what a stranger sends costs the
/// loop nothing, and what one device sends takes no other device's turn.
///
/// Until a message is decrypted nobody can tell whose it is. Everything behind that is bounded: what one device may send
/// (`DeviceAllowance`), and what waits for the loop. While too much does, nothing more is taken from the link.
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
  private let waiting = Atomic(0)
  private let room: Wakeup
  private let end: Interruption
  private let isEnding = Atomic(false)
  /// The operator's keys that count from now on, until the thread has taken them.
  private let trusted = Mutex<[VerificationKey]?>(nil)

  /// Starts the thread, which goes on until `close`.
  ///
  /// - Parameters:
  ///   - steps: by the topics that commands for them come on.
  ///   - decryption: the controller's.
  ///   - operatorKeys: those that tokens may be signed by at first.
  init(
    _ link: any CommandLink, _ steps: [String: StepID], decryption: DecryptionKey, operatorKeys: [VerificationKey],
    allowance: DeviceAllowance = DeviceAllowance()
  ) throws {
    arrivals = try Mailbox()
    room = try Wakeup()
    end = try Interruption.manual()
    self.link = link
    let opening = Opening(
      steps, CommandReader(controller: decryption, operatorKeys: operatorKeys), allowance)
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

  private func run(_ start: Opening) {
    var opening = start
    do {
      while let ready = try? waitReadable([link.descriptor, end.number], until: opening.due), !ready[1] {
        while !isEnding.load(ordering: .relaxed), let event = try link.next() {
          if let keys = trusted.withLock({ $0.take() }) { opening.trust(keys) }
          if let arrival = opening.open(event) { post(arrival) }
          waitForRoom()
        }
        for arrival in opening.ignored() { post(arrival) }
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

/// What the thread knows: whose tokens are good, who has sent how much, and which ignored messages are not reported yet.
private struct Opening: Sendable {
  /// The shortest time between two reports of ignored messages.
  private static let interval = Duration.milliseconds(200)

  private struct Ignored: Sendable {
    var first: (step: StepID, reason: CommandOpener.Reason)?
    var count = 0
    var told = ContinuousClock.now - Opening.interval
  }

  private let steps: [String: StepID]
  private var reader: CommandReader
  private var allowance: DeviceAllowance
  private var strangers = Ignored()
  private var excess = Ignored()

  init(_ steps: [String: StepID], _ reader: CommandReader, _ allowance: DeviceAllowance) {
    (self.steps, self.reader, self.allowance) = (steps, reader, allowance)
  }

  mutating func trust(_ operatorKeys: [VerificationKey]) { reader.trust(operatorKeys) }

  /// - Returns: nil for what the loop need not see.
  mutating func open(_ event: MQTTConnection.Event) -> CommandOpener.Arrival? {
    guard case .message(let message) = event, let step = steps[message.topic] else { return .event(event) }
    let now = ContinuousClock.now
    var rider = ""
    let command = reader.read(message.payload) { token in
      rider = token.subject
      return allowance.admits(token.device, at: now)
    }
    switch command {
    case .unauthenticated(let error)?: return ignore(step, .notRiders(error), \.strangers, now)
    case nil: return ignore(step, .excess(rider: rider), \.excess, now)
    case let command?:
      return .request(Request(message.payload, on: step, isRetained: message.isRetained, command: command))
    }
  }

  /// When the next report of ignored messages is due.
  var due: ContinuousClock.Instant? {
    [strangers, excess].filter { $0.count > 0 }.map { $0.told + Self.interval }.min()
  }

  /// The reports that are due now.
  mutating func ignored() -> [CommandOpener.Arrival] {
    let now = ContinuousClock.now
    return [tell(\.strangers, now), tell(\.excess, now)].compactMap(\.self)
  }

  private mutating func ignore(
    _ step: StepID, _ reason: CommandOpener.Reason, _ kind: WritableKeyPath<Opening, Ignored>,
    _ now: ContinuousClock.Instant
  ) -> CommandOpener.Arrival? {
    if self[keyPath: kind].count == 0 { self[keyPath: kind].first = (step, reason) }
    self[keyPath: kind].count += 1
    return tell(kind, now)
  }

  private mutating func tell(
    _ kind: WritableKeyPath<Opening, Ignored>, _ now: ContinuousClock.Instant
  ) -> CommandOpener.Arrival? {
    let ignored = self[keyPath: kind]
    guard let (step, reason) = ignored.first, ignored.count > 0, now - ignored.told >= Self.interval else { return nil }
    self[keyPath: kind] = Ignored(told: now)
    return .ignored(step, reason, count: ignored.count)
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
