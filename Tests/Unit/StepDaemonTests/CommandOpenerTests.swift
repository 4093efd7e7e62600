import Domain
import MQTT
import StepController
@testable import StepDaemon
import StepProtocol
import SystemIO
import Testing


/// A link that a test fills.
private final class FilledLink: CommandLink, Sendable {
  private let events: Mailbox<MQTTConnection.Event>

  init() throws { events = try Mailbox() }

  func happens(_ event: MQTTConnection.Event) { events.post(event) }
  var descriptor: Int32 { events.descriptor }
  func next() -> MQTTConnection.Event? { events.take() }
  func publish(topic: String, payload: [UInt8], retain: Bool) -> PublishID? { nil }
  var holdUps: Int { 0 }
}

@Suite("Commands are opened beside the loop") struct CommandOpenerTests {
  private let operatorKey = SigningKey()
  private let keys: Controller.Keys
  private let link: FilledLink
  private let screen: CommandScreen
  private let opener: CommandOpener
  private let vehicle = UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!

  init() throws {
    keys = Controller.Keys(
      decryption: DecryptionKey(), signing: SigningKey(), operatorKey: operatorKey.verificationKey)
    link = try FilledLink()
    screen = try CommandScreen(["left": left])
    opener = try CommandOpener(
      link, screen, decryption: keys.decryption, operatorKeys: [keys.operatorKey],
      allowance: DeviceAllowance(perSecond: 1, burst: 3))
  }

  private func token(_ name: String, _ device: SigningKey) -> String {
    Token(
      issuer: "test", subject: name, vehicle: vehicle, steps: [left], notBefore: 0, expires: 1 << 40,
      device: device.verificationKey
    ).signed(by: operatorKey)
  }

  private func question(_ token: String, _ device: SigningKey) -> [UInt8] {
    Command(vehicle: vehicle, step: left, request: .status, token: token)
      .sealed(by: device, to: keys.decryption.encryptionKey).bytes
  }

  private func comes(_ payload: [UInt8], on topic: String = "left") {
    link.happens(.message(Message(topic: topic, payload: payload, isRetained: false)))
  }

  /// What arrives until there is an event, which is left out.
  private func arrivals() throws -> [CommandOpener.Arrival] {
    var arrivals: [CommandOpener.Arrival] = []
    while let arrival = next(opener.arrivals) {
      opener.taken()
      if case .event = arrival { return arrivals }
      arrivals.append(arrival)
    }
    Issue.record("no event")
    return arrivals
  }

  @Test("hands on commands, opened, and everything else as it is, in their order")
  func order() throws {
    defer { opener.close() }
    let device = SigningKey()
    let asked = question(token("ann", device), device)
    comes(asked)
    comes(asked, on: "elsewhere")
    guard case .request(let request)? = next(opener.arrivals) else {
      Issue.record("no request")
      return
    }
    #expect(request.payload == asked && request.step == left)
    guard case .command(_, let token, _)? = request.command else {
      Issue.record("not opened")
      return
    }
    #expect(token.subject == "ann")
    let message = Message(topic: "elsewhere", payload: asked, isRetained: false)
    guard case .event(.message(message))? = next(opener.arrivals) else {
      Issue.record("not handed on")
      return
    }
  }

  @Test("tells of what no rider sent a few times, however much it is, and counts it")
  func strangers() throws {
    defer { opener.close() }
    for _ in 0..<5_000 { comes([0x2E, 0xFF]) }
    var (told, count) = (0, 0)
    while count < 5_000, case .ignored(left, .notRiders(.malformed("not ASCII")), let more)? = next(opener.arrivals) {
      opener.taken()
      (told, count) = (told + 1, count + more)
    }
    #expect(count == 5_000 && told < 20)
  }

  @Test(
    "the screen lets through what may be a command and what is not for a step, and the rest is told with the others")
  func screened() throws {
    defer { opener.close() }
    let device = SigningKey()
    let admits = { [screen] (topic: String, payload: [UInt8]) in
      payload.withUnsafeBytes { screen.admits(topic, $0) }
    }
    #expect(admits("left", question(token("ann", device), device)))
    for topic in ["lef", "left2", "", "right"] { #expect(admits(topic, [0xFF])) }
    for _ in 0..<5_000 { #expect(!admits("left", [0x2E, 0xFF])) }
    comes([0x2E])
    var (told, count) = (0, 0)
    while count < 5_001, case .ignored(left, .notRiders(.malformed), let more)? = next(opener.arrivals) {
      opener.taken()
      (told, count) = (told + 1, count + more)
    }
    #expect(count == 5_001 && told < 20)
  }

  @Test("one device's excess is passed over, and another's command behind it is not")
  func excess() throws {
    defer { opener.close() }
    let (mallory, ann) = (SigningKey(), SigningKey())
    let (theirs, hers) = (token("mallory", mallory), token("ann", ann))
    // With a wrong signature, too: whose token it is counts.
    let asked = question(theirs, SigningKey())
    for _ in 0..<20 { comes(asked) }
    comes(question(hers, ann))
    link.happens(.connected)
    let arrivals = try arrivals()
    let riders = arrivals.compactMap { arrival -> String? in
      guard case .request(let request) = arrival, case .command(_, let token, _)? = request.command else { return nil }
      return token.subject
    }
    #expect(riders == ["ann"])
    #expect(arrivals.contains { if case .ignored(_, .excess(rider: "mallory"), _) = $0 { true } else { false } })
  }

  @Test("a device has its allowance again after a while, and no other's")
  func allowance() {
    var allowance = DeviceAllowance()
    let (mallory, ann, begin) = (SigningKey().verificationKey, SigningKey().verificationKey, Instant.now)
    let atOnce = (0..<5_000).count { _ in allowance.admits(mallory, at: begin) }
    #expect(atOnce == DeviceAllowance.burst)
    let another = allowance.admits(ann, at: begin)
    #expect(another)
    let later = (1...10_000).count { allowance.admits(mallory, at: begin + .milliseconds($0)) }
    #expect(abs(later - 10 * DeviceAllowance.perSecond) < 3)
  }
}
