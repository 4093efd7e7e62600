import Domain
import Encoding
import Testing

@testable import StepProtocol

/// Calls: what only the device that asked and the controller that was asked can compute.
@Suite("Calls") struct CallTests {
  let device = SigningKey()
  let operatorKey = SigningKey()
  let controller = DecryptionKey()
  let signing = SigningKey()
  let vehicle = UUID.random()
  let left = StepID("left")!

  private func token() -> String {
    Token(
      issuer: "test", subject: "ann", vehicle: vehicle, steps: [left], notBefore: 0, expires: 100,
      device: device.verificationKey
    ).signed(by: operatorKey)
  }

  private func sealed(_ request: Command.Request = .status) -> SealedCommand {
    Command(vehicle: vehicle, step: left, request: request, token: token())
      .sealed(by: device, to: controller.encryptionKey)
  }

  private func key(of payload: [UInt8]) -> CallKey? {
    guard
      case .command(_, _, let key) = ReceivedCommand(
        payload, controller: controller, operatorKey: operatorKey.verificationKey)
    else { return nil }
    return key
  }

  @Test("both ends have the same key, and each question has its own")
  func agreed() {
    let questions = [sealed(), sealed()]
    for question in questions { #expect(key(of: question.bytes) == question.callKey) }
    #expect(questions[0].callKey != questions[1].callKey)
    #expect(key(of: sealed(.stop(epoch: [UInt8](repeating: 1, count: 16))).bytes) == nil)
  }

  @Test("no frame comes twice, and each looks like any service's UUID of version 4")
  func frames() {
    let frames = (0..<20).flatMap { _ in
      let key = sealed().callKey
      return (0..<32).map { key.frame(ofSlot: $0, challenge: [1]) } + [key.frame(ofSlot: 0, challenge: [2])]
    }
    #expect(Set(frames).count == frames.count)
    for frame in frames { #expect(frame.high & 0xF000 == 0x4000 && frame.low >> 62 == 0b10) }
    // Of the 122 other bits each is set about as often as not: 660 frames, 6 standard deviations.
    for bit in 0..<128 where ![48, 49, 50, 51, 64, 65].contains(bit) {
      let count = frames.count { ((bit < 64 ? $0.high : $0.low) >> UInt64(63 - bit % 64)) & 1 == 1 }
      #expect((253...407).contains(count), "bit \(bit)")
    }
  }

  private func statement(_ call: CallRequest?, policy: PresencePolicy) -> Statement {
    let challenge = Statement.Challenge([UInt8](repeating: 2, count: 16), policy: policy, call: call)
    return Statement(
      vehicle: vehicle, step: left, position: .close, phase: .idle, fault: nil, sequence: 1,
      epoch: [UInt8](repeating: 1, count: 16), clock: 5,
      answer: .init(command: sealed().digest, nonce: [UInt8](repeating: 3, count: 16), outcome: .challenge(challenge)))
  }

  @Test("a statement tells how to call, where the device is heard, and whether it must be")
  func told() throws {
    for heard in [nil, left] {
      for both in [true, false] {
        let policy = PresencePolicy(
          methods: [.beacon, .heard], zone: .near, acceptsStatic: true, needsHearing: both)
        let told = statement(CallRequest(slot: 300, slots: 32, heard: heard), policy: policy)
        #expect(try Statement(payload: told.payload(signedBy: signing), verifiedBy: signing.verificationKey) == told)
      }
    }
  }

  @Test(
    "a vehicle cannot have a device call for longer than ten seconds, nor in other slots",
    arguments: [
      #"{"slot":300,"slots":34}"#, #"{"slot":300,"slots":0}"#, #"{"slot":99,"slots":1}"#,
      #"{"slot":1001,"slots":1}"#, #"{"slot":300}"#, #"{"slots":3}"#, #"{"slot":300,"slots":3,"heard":"x/y"}"#,
      #"{"slot":300,"slots":3,"more":1}"#, #"{"slot":300,"slots":9007199254740991}"#, "[]", "1",
    ])
  func limits(call: String) throws {
    let policy = PresencePolicy(methods: [.heard], zone: .near, acceptsStatic: true)
    let good = statement(CallRequest(slot: 300, slots: 3), policy: policy).payload(signedBy: signing)
    let claims = try SignedObject(parsing: JSON(parsing: good)["statement"]!.string!, as: .status).payload
    func read(_ call: JSON) throws -> Statement {
      let members = claims.object!.map { $0.name == "ext" ? JSON.Member("ext", ["call": call]) : $0 }
      let signed = SignedObject.sign(.object(members), as: .status, by: signing)
      return try Statement(
        payload: JSON.object([.init("statement", .string(signed))]).bytes, verifiedBy: signing.verificationKey)
    }
    _ = try read(["slot": 300, "slots": 33])
    #expect(throws: ProtocolError.self) { try read(JSON(parsing: Array(call.utf8))) }
  }
}
