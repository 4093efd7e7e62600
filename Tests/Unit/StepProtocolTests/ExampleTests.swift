import Domain
import Encoding
import Foundation
import TestSupport
import Testing

@testable import Access
@testable import StepProtocol

/// What PROTOCOL.md shows was made by a program in Python. Here it is read as the controller and the rider read it.
@Suite("The worked example of PROTOCOL.md") struct ExampleTests {
  let example = Vectors.example

  @Test("the keys have the thumbprints that stand there")
  func thumbprints() throws {
    #expect(
      try SigningKey(jwk: example["operator-key"]!).verificationKey.thumbprint.description
        == example.text("operator-thumbprint"))
    let encryption = try DecryptionKey(jwk: example["controller-encryption-key"]!)
    #expect(encryption.thumbprint.description == example.text("controller-encryption-thumbprint"))
  }

  @Test("the controller reads each command as the claims that stand beside them")
  func commands() throws {
    let controller = try DecryptionKey(jwk: example["controller-encryption-key"]!)
    let operatorKey = try VerificationKey(jwk: example["operator-key"]!)
    for name in ["unknown", "open", "stop"] {
      let payload = Array(example.text("\(name)-command").utf8)
      #expect(CommandDigest(of: payload).text == example.text("\(name)-digest"))
      guard
        case .command(let command, let token, _) = ReceivedCommand(
          payload, controller: controller, operatorKey: operatorKey)
      else {
        Issue.record("\(name) was not read")
        continue
      }
      let claims = example["\(name)-claims"]!
      #expect(command.vehicle.description == claims.text("vehicle"))
      #expect(command.step.description == claims.text("step"))
      #expect(Base64URL.encode(command.nonce) == claims.text("nonce"))
      #expect(token.subject == example["token-claims"]!.text("sub"))
      switch command.request {
      case .status: #expect(claims.text("position") == "unknown")
      case .stop(let epoch):
        #expect(claims.text("position") == "stop")
        #expect(Base64URL.encode(epoch) == claims.text("epoch"))
      case .move(let move):
        #expect(move.target.rawValue == claims.text("position"))
        #expect(move.deadline == claims["deadline"]!.integer)
        #expect(Base64URL.encode(move.challenge) == claims.text("challenge"))
        #expect(move.proofTime == claims["proof"]!["time"]!.integer)
      }
    }
  }

  @Test("the rider reads the statements, and what answers them to which command")
  func statements() throws {
    let key = try VerificationKey(jwk: example["controller-signing-key"]!)
    func read(_ name: String) throws -> Statement {
      try Statement(payload: Array(example.text("\(name)-status").utf8), verifiedBy: key)
    }
    let challenge = try read("challenge")
    #expect(challenge.answer?.command.text == example.text("unknown-digest"))
    guard case .challenge? = challenge.answer?.outcome else {
      Issue.record("no challenge")
      return
    }
    #expect(try read("moving").phase == .moving)
    let idle = try read("idle")
    #expect(idle.answer?.command.text == example.text("open-digest"))
    #expect(idle.answer?.outcome == .obeyed)
    #expect(idle.position == .open)
    guard case .refused? = try read("refusal").answer?.outcome else {
      Issue.record("no refusal")
      return
    }
    guard case .challenge(let watched)? = try read("watch").answer?.outcome else {
      Issue.record("no challenge")
      return
    }
    #expect(watched.watch == .approaching)
    guard case .challenge(let examined)? = try read("about-answer").answer?.outcome else {
      Issue.record("no challenge")
      return
    }
    #expect(examined.about == About(version: "0.1.0", time: 1_767_254_460_250))
    #expect(
      try read("approaching").answer?.refusal
        == Refusal(.approaching, oncoming: Oncoming(category: "bicycle", arrival: 1900)))
  }

  @Test("a call's frames are those that Python's HPKE and hmac give, and the rider reads the call")
  func call() throws {
    let controller = try DecryptionKey(jwk: example["controller-encryption-key"]!)
    let operatorKey = try VerificationKey(jwk: example["operator-key"]!)
    let payload = Array(example.text("unknown-command").utf8)
    guard
      case .command(_, _, let key?) = ReceivedCommand(payload, controller: controller, operatorKey: operatorKey)
    else {
      Issue.record("no call")
      return
    }
    let statement = try Statement(
      payload: Array(example.text("call-status").utf8),
      verifiedBy: VerificationKey(jwk: example["controller-signing-key"]!))
    guard case .challenge(let challenge)? = statement.answer?.outcome else {
      Issue.record("no challenge")
      return
    }
    for entry in example["call-frames"]!.array! {
      let frame = key.frame(ofSlot: Int(entry["slot"]!.integer!), challenge: challenge.bytes)
      #expect(frame.description == entry.text("frame"))
    }
    #expect(challenge.policy.needsHearing && challenge.policy.methods == [.beacon, .heard])
    #expect(challenge.call == CallRequest(slot: 300, slots: 32, heard: StepID("left")))
  }

  @Test("the beacon's minors are those that Python's hmac gives")
  func minors() throws {
    let table = example["beacon-minors"]!
    let rotating = RotatingMinor(
      secret: try BeaconSecret(jwk: example["beacon-secret"]!), step: StepID(table.text("step"))!,
      period: Int(table["period"]!.integer!))
    let minors = table["minors"]!.array!
    #expect(minors.count > 4)
    for each in minors { #expect(Int64(rotating.minor(at: each["time"]!.integer!)) == each["minor"]!.integer!) }
  }

  @Test("the controller reads the dynamic tag with its keys, and the proof that names it")
  func tag() throws {
    let table = example["tag-keys"]!
    let keys = DynamicTag.Keys(
      metaRead: table.hexadecimal("meta_read_key"), fileRead: table.hexadecimal("file_read_key"))!
    let uid = TagUID(table.text("uid"))!
    let tag = try DynamicTag(parsing: example.text("tag-uri"))
    #expect(tag.reading(with: keys) == DynamicTag.Reading(uid: uid, counter: 61))
    let (proof, time) = try Proof.read(example["tag-proof"]!)
    #expect(proof == .tag(uid: uid, content: example.text("tag-uri")))
    #expect(proof.json(time: time) == example["tag-proof"]!)
  }

  @Test("the rider reads the vehicle's code as the claims that stand beside it")
  func vehicleCode() throws {
    let (code, operatorKey) = try VehicleCode.verify(example.text("vehicle-code"))
    let claims = example["vehicle-code-claims"]!
    #expect(try operatorKey == VerificationKey(jwk: example["operator-key"]!))
    #expect(code.vehicle.uuid.description == claims.text("uuid"))
    #expect(code.host == claims.text("host"))
    #expect(Base64URL.encode(code.authority) == claims.text("ca"))
    #expect(code.vehicle.steps.map(\.measuredPower) == [-59, nil])
    #expect(code.vehicle.steps.map(\.minor) == [nil, 7])
    // Signatures of Ed25519 are the same each time, and so is our text.
    let signed = code.signed(by: try SigningKey(jwk: example["operator-key"]!))
    #expect(signed == example.text("vehicle-code"))
  }

  @Test("the controller reads the notice as the claims that stand beside it")
  func notice() throws {
    let key = try SigningKey(jwk: example["operator-key"]!)
    let notice = try #require(
      try Notice.read(Array(example.text("notice").utf8), verifiedBy: [key.verificationKey]))
    #expect(notice.claims == example["notice-claims"]!)
    #expect(notice.signed(by: key) == example.text("notice"))
    #expect(notice.revokes(try Token(verifying: example.text("token"), by: key.verificationKey)))
  }

  @Test("the operator reads the event as the claims that stand beside it")
  func event() throws {
    let key = try DecryptionKey(jwk: example["operator-events-key"]!)
    let text = try VehicleEvent.opened(Array(example.text("event").utf8), with: [key])
    #expect(String(decoding: text, as: UTF8.self) == example.text("event-signed"))
    #expect(EventDigest(of: text).text == example.text("event-hash"))
    let controller = try SigningKey(jwk: example["controller-signing-key"]!)
    let event = try VehicleEvent(verifying: text, by: controller.verificationKey)
    #expect(event.claims == example["event-claims"]!)
    #expect(event.signed(by: controller) == example.text("event-signed"))
    let next = try VehicleEvent(
      verifying: Array(example.text("event-place-signed").utf8), by: controller.verificationKey)
    #expect(next.claims == example["event-place-claims"]! && next.previous == EventDigest(of: text))
    let place = try #require(next.content.place)
    #expect(abs(place.latitude - 48.77591) < 1e-9 && abs(place.longitude - 9.1833) < 1e-9)
    #expect(place.error == 25 && place.age == 3)
  }

  @Test("the page shows these very values")
  func page() throws {
    let page = try Repository.text("Sources/Core/StepProtocol/PROTOCOL.md").filter { !$0.isWhitespace }
    for name in [
      "token", "open-command", "unknown-command", "open-digest", "controller-signing-thumbprint", "tag-uri",
      "vehicle-code", "notice", "event",
    ] {
      #expect(page.contains(example.text(name)), "\(name)")
    }
  }
}
