import Domain
import Encoding
import Testing

@testable import Access
@testable import StepProtocol

@Suite("What a device asks for, and what it gets") struct AccessFileTests {
  let key = SigningKey()
  let next = SigningKey()
  let device = SigningKey()
  let uuid = UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!

  func code(by key: SigningKey) -> String {
    VehicleCode(
      vehicle: try! Vehicle(name: "Car", uuid: uuid, steps: [Step(id: StepID("left")!, side: .left, major: 1)]),
      topic: TopicPrefix("a/b")!, host: "car.example", port: 8883, authority: [0x30, 0],
      encryptionKey: DecryptionKey().encryptionKey, signingKey: SigningKey().verificationKey, issued: 1_000
    ).signed(by: key)
  }

  func token(by key: SigningKey, vehicle: UUID? = nil, issued: Int64? = nil) -> String {
    Token(
      issuer: "o", subject: "anna", vehicle: vehicle ?? uuid, steps: [StepID("left")!], notBefore: 0, expires: 2_000,
      device: device.verificationKey, issued: issued
    ).signed(by: key)
  }

  func access(by key: SigningKey, notice: Notice? = nil, signedBy: SigningKey? = nil) throws -> AccessFile {
    try AccessFile(
      vehicle: code(by: key), token: token(by: key), certificate: [0x30, 0],
      notice: notice.map { $0.signed(by: signedBy ?? self.key) })
  }

  @Test("a request is read back, and only as its device signed it")
  func request() throws {
    let text = DeviceRequest.signed(name: "anna", certificateRequest: [1, 2, 3], issued: 5, by: device)
    let request = try DeviceRequest(verifying: text)
    #expect(request.name == "anna" && request.certificateRequest == [1, 2, 3] && request.issued == 5)
    #expect(request.device == device.verificationKey)
    let bytes = Array(text.utf8)
    for index in stride(from: 0, to: bytes.count, by: 5) {
      var changed = bytes
      changed[index] = changed[index] == 0x41 ? 0x42 : 0x41
      #expect(throws: ProtocolError.self, "byte \(index)") {
        try DeviceRequest(verifying: String(decoding: changed, as: UTF8.self))
      }
    }
    #expect(throws: ProtocolError.self) { try DeviceRequest(verifying: code(by: key)) }
  }

  @Test("an answer is read back; code and token are by one key and for one vehicle")
  func answer() throws {
    let access = try access(by: key)
    #expect(try AccessFile(parsing: access.text, now: 1_000) == access)
    #expect(access.operatorKey == key.verificationKey && access.token.device == device.verificationKey)
    for token in [token(by: next), token(by: key, vehicle: UUID("00000000-0000-4000-8000-000000000000")!)] {
      #expect(throws: ProtocolError.self) {
        try AccessFile(vehicle: code(by: key), token: token, certificate: [0x30, 0])
      }
    }
  }

  @Test("a new key is believed if the known one has listed it for this vehicle, and for no other reason")
  func vouched() throws {
    func notice(_ vehicle: UUID? = nil, _ keys: SigningKey...) -> Notice {
      Notice(vehicle: vehicle ?? uuid, sequence: 1, issued: 1, keys: keys.map(\.verificationKey))
    }
    let known = key.verificationKey
    #expect(try access(by: key).isVouched(by: known))
    #expect(try access(by: next, notice: notice(nil, next, key)).isVouched(by: known))
    #expect(try !access(by: next).isVouched(by: known))
    #expect(try !access(by: next, notice: notice(nil, key)).isVouched(by: known))
    #expect(try !access(by: next, notice: notice(nil, next, key), signedBy: next).isVouched(by: known))
    let other = UUID("00000000-0000-4000-8000-000000000000")!
    #expect(try !access(by: next, notice: notice(other, next, key)).isVouched(by: known))
  }

  @Test("a notice in it must be the operator's, for this vehicle, and by one of its keys")
  func notices() throws {
    func notice(_ vehicle: UUID, _ keys: SigningKey...) -> Notice {
      Notice(vehicle: vehicle, sequence: 3, issued: 0, keys: keys.map(\.verificationKey))
    }
    let plain = try access(by: next)
    try plain.checkNotice()
    let own = plain.vehicle.vehicle.uuid
    try access(by: next, notice: notice(own, next, key)).checkNotice()
    let other = UUID("00000000-0000-4000-8000-000000000000")!
    let stranger = SigningKey()
    for (wrong, signer) in [
      (notice(own, key), key), (notice(other, next, key), key), (notice(own, next, key), stranger),
    ] {
      let access = try access(by: next, notice: wrong, signedBy: signer)
      #expect(throws: ProtocolError.self) { try access.checkNotice() }
    }
    let garbage = try AccessFile(
      vehicle: code(by: key), token: token(by: key), certificate: [0x30, 0], notice: "garbage")
    #expect(throws: ProtocolError.self) { try garbage.checkNotice() }
  }

  @Test("a token says when it was signed, for readers that know that member, and is none the worse for the others")
  func issued() throws {
    #expect(try Token(verifying: token(by: key, issued: 77), by: key.verificationKey).issued == 77)
    #expect(try Token(verifying: token(by: key), by: key.verificationKey).issued == nil)
  }

  @Test("one that is larger than its reader accepts is refused, though its signature is good")
  func tooLarge() throws {
    let large = [UInt8](repeating: 1, count: 3_000)
    let request = DeviceRequest.signed(name: "anna", certificateRequest: large, issued: 5, by: device)
    #expect(throws: ProtocolError.malformed("larger than 2953 bytes")) { try DeviceRequest(verifying: request) }
    let keys = VehicleKeys.signed(
      encryption: DecryptionKey().encryptionKey, certificateRequest: large, issued: 5, by: device)
    #expect(throws: ProtocolError.malformed("larger than 2953 bytes")) { try VehicleKeys(verifying: keys) }
    #expect(throws: ProtocolError.malformed("larger than 16384 bytes")) {
      try AccessFile(
        vehicle: code(by: key), token: token(by: key), certificate: [UInt8](repeating: 1, count: 12_288))
    }
  }
}
