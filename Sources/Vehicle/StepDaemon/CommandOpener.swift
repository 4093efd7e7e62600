import Cryptography
import Domain
import MQTT
import StepController
import StepProtocol
import Synchronization
import SystemIO

/// Takes events from a link and opens riders' commands, on a separate thread. So a stranger's messages cost the loop
/// nothing, and one device cannot use up another device's turn.
///
/// The sender is unknown until a message is decrypted. After that everything is bounded: the messages of each device,
/// and those that wait for the loop. While too many wait, nothing is taken from the link.
final class CommandOpener: Sendable {
  enum Arrival: Sendable {
    /// Any event that is not a command for a step.
    case event(MQTTConnection.Event)
    case request(Request)
    /// The operator's notice, which a rider brought.
    case notice([UInt8])
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

  /// How much each device may send: more than any program that waits for answers sends, and so little that answering
  /// takes a twentieth of a processor. Times are in seconds.
  static let allowance = Allowance(burst: 500, interval: 1 / Double(perSecond))
  static let perSecond = 250
  /// The number of arrivals that may wait for the loop.
  private static let capacity = 64

  let arrivals: Mailbox<Arrival>
  private let link: any CommandLink
  /// Nil if the vehicle takes no links.
  private let links: LinkListener?
  private let screen: CommandScreen
  private let waiting = Atomic(0)
  private let room: Wakeup
  private let thread: WorkerThread
  private let isEnding = Atomic(false)
  /// The new operator keys, until the thread has taken them.
  private let trusted = Mutex<[VerificationKey]?>(nil)

  /// Starts the thread, which runs until `close`.
  ///
  /// - Parameters:
  ///   - screen: the link's screen, or one that the link does not ask. A message that the screen would refuse is
  ///     refused here too.
  ///   - links: nil if the vehicle takes no links.
  ///   - decryption: the controller's key.
  ///   - operatorKeys: the keys that may sign tokens at first.
  init(
    _ link: any CommandLink, _ screen: CommandScreen, links: LinkListener? = nil, decryption: DecryptionKey,
    operatorKeys: [VerificationKey], allowance: Allowance = CommandOpener.allowance
  ) throws {
    arrivals = try Mailbox()
    room = try Wakeup()
    thread = try WorkerThread()
    self.link = link
    self.links = links
    self.screen = screen
    let opening = OpenerState(
      screen, CommandReader(controller: decryption, operatorKeys: operatorKeys), decryption.thumbprint, allowance)
    try thread.start { self.run(opening) }
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
    thread.stop.interrupt()
  }

  private func run(_ start: OpenerState) {
    var opening = start
    let descriptors = [
      link.descriptor, thread.stop.number, screen.refusal.number, links?.arrivals.descriptor ?? -1,
    ]
    do {
      while let ready = try? waitReadable(descriptors, until: opening.due), !ready[1] {
        if ready[2] { screen.refusal.clear() }
        var (event, frame) = (MQTTConnection.Event?.none, LinkListener.Arrival?.none)
        repeat {
          // One of each in turn: neither way holds up the other.
          (event, frame) = (try link.next(), links?.arrivals.take())
          if let keys = trusted.withLock({ $0.take() }) { opening.trust(keys) }
          if let event, let arrival = opening.open(event) { post(arrival) }
          if let frame {
            let (arrival, verdict) = opening.open(frame)
            links?.judge(verdict, of: frame.link)
            if let arrival { post(arrival) }
          }
          for arrival in opening.ignored() { post(arrival) }
          waitForRoom()
        } while (event != nil || frame != nil) && !isEnding.load(ordering: .relaxed)
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
      _ = try? waitReadable([room.number, thread.stop.number], until: nil)
      room.clear()
    }
  }
}

/// The state of the thread: which tokens are valid, how much each device has sent, and which ignored messages are still
/// unreported.
private struct OpenerState: Sendable {
  private let screen: CommandScreen
  private let steps: Set<StepID>
  private var reader: CommandReader
  /// The controller's key, as a command names it.
  private let key: Thumbprint
  /// The last commands that came on links.
  private var known = RecentSet<[UInt8]>(capacity: 1024)
  /// The links that a rider has used.
  private var proven = RecentSet<Int>(capacity: 64)
  private let allowance: Allowance
  private var allowances: [VerificationKey: Allowance] = [:]
  private let start = Instant.now
  private var excess = IgnoredMessages()

  init(_ screen: CommandScreen, _ reader: CommandReader, _ key: Thumbprint, _ allowance: Allowance) {
    (self.screen, self.reader, self.key, self.allowance) = (screen, reader, key, allowance)
    steps = Set(screen.steps.values)
  }

  mutating func trust(_ operatorKeys: [VerificationKey]) { reader.trust(operatorKeys) }

  /// - Returns: nil if the loop need not see the event.
  mutating func open(_ event: MQTTConnection.Event) -> CommandOpener.Arrival? {
    guard case .message(let message) = event, let step = screen.steps[message.topic] else { return .event(event) }
    return open(message.payload, on: step, isRetained: message.isRetained)
  }

  /// Opens what came on a link.
  mutating func open(_ arrival: LinkListener.Arrival) -> (CommandOpener.Arrival?, LinkListener.Verdict) {
    guard let step = arrival.frame.step else {
      // Only riders bring notices.
      return proven.contains(arrival.link) ? (.notice(arrival.frame.payload), .riders(isNew: false)) : (nil, .strangers)
    }
    let brief = arrival.frame.payload
    guard steps.contains(step), let text = EncryptedObject.text(ofBrief: brief, for: key) else {
      return (nil, .strangers)
    }
    switch open(text, on: step, isRetained: false, from: arrival) {
    case nil: return (nil, .strangers)
    case let opened?:
      // Whoever plays a recording hears nothing.
      guard known.insert(SHA256.digest(of: brief)) else { return (nil, .riders(isNew: false)) }
      proven.insert(arrival.link)
      return (opened, .riders(isNew: true))
    }
  }

  /// - Parameter arrival: how it came on a link; nil if it came from the broker.
  private mutating func open(
    _ payload: [UInt8], on step: StepID, isRetained: Bool, from arrival: LinkListener.Arrival? = nil
  ) -> CommandOpener.Arrival? {
    var rider = ""
    let command = reader.read(payload) { token in
      rider = token.subject
      let now = start.duration(to: .now).inSeconds
      // Only devices with an operator's token get here, so there are few.
      if allowances.count > 1024 { allowances = allowances.filter { !$0.value.isWhole(at: now) } }
      return allowances[token.device, default: allowance].take(at: now)
    }
    switch command {
    case .unauthenticated(let fault)?:
      screen.refuse(step, fault)
      return nil
    case nil:
      excess.add(step, .excess(rider: rider))
      return nil
    case let command?:
      let origin = arrival.flatMap { arrival in
        reader.answerKey.map { LinkOrigin(link: arrival.link, key: $0, level: arrival.level) }
      }
      return .request(Request(payload, on: step, isRetained: isRetained, command: command, from: origin))
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
