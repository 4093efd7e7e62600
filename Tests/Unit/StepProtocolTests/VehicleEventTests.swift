import Domain
import Encoding
import Testing

@testable import StepProtocol

@Suite("A vehicle's event") struct VehicleEventTests {
  let controller = SigningKey()
  let operatorKey = DecryptionKey()
  let vehicle = UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!
  let refusal = VehicleEvent.Content(
    .refused, time: 1_767_254_400, step: StepID("left")!, position: .open, token: "anna-1", code: "wrong_step",
    cause: "wrong_minor", method: "beacon", zone: "near", untold: 3)

  func event(_ content: VehicleEvent.Content, _ sequence: Int64 = 1, after previous: String? = nil) -> VehicleEvent {
    VehicleEvent(
      vehicle: vehicle, sequence: sequence, previous: previous.map { EventDigest(of: Array($0.utf8)) } ?? .random(),
      content)
  }

  @Test("is read back by its operator alone, and only as its controller has signed it")
  func roundTrip() throws {
    let first = event(.init(.started, time: 1)).signed(by: controller)
    let second = event(refusal, 2, after: first)
    let text = Array(second.signed(by: controller).utf8)
    let payload = VehicleEvent.sealed(text, to: operatorKey.encryptionKey)
    let opened = try VehicleEvent.opened(payload, with: [DecryptionKey(), operatorKey])
    #expect(opened == text)
    #expect(try VehicleEvent(verifying: opened, by: controller.verificationKey) == second)
    #expect(second.previous == EventDigest(of: Array(first.utf8)))
    #expect(throws: ProtocolError.unknownKey) { try VehicleEvent.opened(payload, with: [DecryptionKey()]) }
    #expect(throws: ProtocolError.unknownKey) {
      try VehicleEvent(verifying: opened, by: SigningKey().verificationKey)
    }
    for index in stride(from: 0, to: payload.count, by: 7) {
      var changed = payload
      changed[index] = changed[index] == 0x41 ? 0x42 : 0x41
      #expect(throws: ProtocolError.self, "byte \(index)") {
        let text = try VehicleEvent.opened(changed, with: [operatorKey])
        _ = try VehicleEvent(verifying: text, by: controller.verificationKey)
      }
    }
  }

  @Test("looks the same to a broker, whatever it says")
  func size() {
    let sizes = [refusal, .init(.started, time: 1), .init(.notice, time: 1_767_254_400, notice: 1_767_254_400)].map {
      VehicleEvent.sealed(Array(event($0).signed(by: controller).utf8), to: operatorKey.encryptionKey).count
    }
    #expect(Set(sizes).count == 1)
    var long = refusal
    long.token = String(repeating: "\u{1}", count: 128)
    let sealed = VehicleEvent.sealed(Array(event(long).signed(by: controller).utf8), to: operatorKey.encryptionKey)
    #expect(sealed.count <= VehicleEvent.maximumSize)
  }

  @Test("tells a place in whole numbers, or none that is not on the earth")
  func place() throws {
    let place = try #require(ReportedPlace(latitude: -33.8568001, longitude: 151.2153, error: 2.41, age: 3.2))
    #expect(place.north == 561_431_999 && place.east == 3_312_153_000 && place.error == 25 && place.age == 4)
    #expect(abs(place.latitude + 33.8568001) < 1e-9 && abs(place.longitude - 151.2153) < 1e-9)
    var ended = VehicleEvent.Content(.ended, time: 1, step: StepID("left")!, position: .open)
    ended.place = place
    let text = event(ended).signed(by: controller)
    #expect(try VehicleEvent(verifying: Array(text.utf8), by: controller.verificationKey).content == ended)
    for (latitude, longitude, error, age) in [
      (90.1, 0, 1, 0), (0, 180.1, 1, 0), (0, 0, 1001, 0), (0, 0, -1, 0), (0, 0, 1, 60.5), (0, 0, 1, -2),
      (Double.nan, 0, 1, 0), (0, .infinity, 1, 0),
    ] as [(Double, Double, Double, Double)] {
      #expect(ReportedPlace(latitude: latitude, longitude: longitude, error: error, age: age) == nil)
    }
    for place in [
      #"{"north":-1,"east":0,"error":0,"age":0}"#, #"{"north":1800000001,"east":0,"error":0,"age":0}"#,
      #"{"north":0,"east":0,"error":0,"age":61}"#, #"{"north":0,"east":0,"error":0}"#, "1",
      #"{"north":0,"east":0,"error":0,"age":0,"x":0}"#, #"{"north":0.5,"east":0,"error":0,"age":0}"#,
    ] {
      let members = (event(ended).claims.object ?? []).filter { $0.name != "ext" }
      let claims = JSON.object(members + [.init("ext", ["place": try JSON(parsing: place.utf8)])])
      let signed = SignedObject.sign(claims, as: .event, by: controller)
      #expect(throws: ProtocolError.self, "\(place)") {
        try VehicleEvent(verifying: Array(signed.utf8), by: controller.verificationKey)
      }
    }
  }

  @Test("a larger payload is refused before it is decrypted")
  func tooLarge() {
    let payload = VehicleEvent.sealed([UInt8](repeating: 0x41, count: 4_096), to: operatorKey.encryptionKey)
    #expect(throws: ProtocolError.malformed("larger than 4096 bytes")) {
      try VehicleEvent.opened(payload, with: [operatorKey])
    }
  }

  @Test("is no other signed object, and no command")
  func otherKinds() throws {
    let text = event(refusal).signed(by: controller)
    #expect(throws: ProtocolError.self) { try Token(verifying: text, by: controller.verificationKey) }
    let status = SignedObject.sign(event(refusal).claims, as: .status, by: controller)
    #expect(throws: ProtocolError.self) {
      try VehicleEvent(verifying: Array(status.utf8), by: controller.verificationKey)
    }
    let command = EncryptedObject.seal(Array(text.utf8), to: operatorKey.encryptionKey).text
    #expect(throws: ProtocolError.self) { try VehicleEvent.opened(Array(command.utf8), with: [operatorKey]) }
    let sealed = VehicleEvent.sealed(Array(text.utf8), to: operatorKey.encryptionKey)
    #expect(throws: ProtocolError.self) {
      try EncryptedObject.open(String(decoding: sealed, as: UTF8.self), with: operatorKey)
    }
  }

  @Test("shows words that a later version has")
  func later() throws {
    let claims =
      #"{"vehicle":"\#(vehicle)","seq":1,"prev":"\#(String(repeating: "A", count: 43))","time":1,"kind":"flew","code":"wings","ext":{"height":3}}"#
    let text = SignedObject.sign(try JSON(parsing: Array(claims.utf8)), as: .event, by: controller)
    let event = try VehicleEvent(verifying: Array(text.utf8), by: controller.verificationKey)
    #expect(event.content.kind == .other("flew"))
    #expect(event.content.code == "wings")
  }

  @Test(
    "that has another form is refused",
    arguments: [
      #""seq":1,PREV,"time":1"#, #""seq":1,PREV,"kind":"ended""#, #""time":1,PREV,"kind":"ended""#,
      #""seq":-1,PREV,"time":1,"kind":"ended""#, #""seq":1,PREV,"time":1,"kind":"Ended""#,
      #""seq":1,"time":1,"kind":"ended","prev":"short""#, #""seq":1,"time":1,"kind":"ended""#,
      #""seq":1,PREV,"time":1,"kind":"ended","position":"ajar""#,
      #""seq":1,PREV,"time":1,"kind":"ended","step":"a/b""#, #""seq":1,PREV,"time":1,"kind":"ended","more":1"#,
      #""seq":1,PREV,"time":1,"kind":"ended","jti":"""#, #""seq":1,PREV,"time":1,"kind":"ended","seq":2"#,
      #""seq":1,PREV,"time":1,"kind":"ended","ext":{"a":1},"crit":["a"]"#,
    ])
  func malformed(members: String) throws {
    let previous = "\"prev\":\"\(String(repeating: "A", count: 43))\""
    let parts = members.split(separator: "PREV", omittingEmptySubsequences: false).joined(separator: previous)
    guard let claims = try? JSON(parsing: Array(#"{"vehicle":"\#(vehicle)",\#(parts)}"#.utf8)) else { return }
    #expect(throws: ProtocolError.self) {
      try VehicleEvent(
        verifying: Array(SignedObject.sign(claims, as: .event, by: controller).utf8), by: controller.verificationKey)
    }
  }

  @Test("a notice says what events are encrypted to, and which the operator has")
  func notice() throws {
    let key = SigningKey()
    let place = EventPlace(7, EventDigest(of: [1]))
    let notice = Notice(
      vehicle: vehicle, sequence: 1, issued: 1, keys: [key.verificationKey], eventKey: operatorKey.encryptionKey,
      acknowledged: place)
    let read = try Notice.read(Array(notice.signed(by: key).utf8), verifiedBy: [key.verificationKey])
    #expect(read == notice)
    #expect(try Notice(claims: notice.claims) == notice)
    for members in [
      #""event_key":"AAAA""#, #""event_key":"\#(String(repeating: "A", count: 43))""#, #""acked":{"seq":1}"#,
      #""acked":{"seq":1,"hash":"AAAA"}"#, #""acked":7"#,
    ] {
      let text =
        #"{"vehicle":"\#(vehicle)","seq":1,"iat":1,"keys":[\#(key.verificationKey.jwk.text)],"revoked":[],\#(members)}"#
      let claims = try JSON(parsing: Array(text.utf8))
      #expect(throws: ProtocolError.self, "\(members)") { try Notice(claims: claims) }
    }
  }
}
