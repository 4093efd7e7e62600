import Cryptography
import Domain
import Encoding
import Testing

@testable import StepProtocol

@Suite("Reading commands") struct CommandReaderTests {
  private let operatorKey = SigningKey()
  private let controller = DecryptionKey()
  private let device = SigningKey()
  private let vehicle = Domain.UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!
  private let step = StepID("left")!
  private var reader: CommandReader

  init() { reader = CommandReader(controller: controller, operatorKeys: [operatorKey.verificationKey]) }

  private func token(by key: SigningKey, _ name: String = "ann") -> String {
    Token(
      issuer: "test", subject: name, vehicle: vehicle, steps: [step], notBefore: 0, expires: 1 << 40,
      device: device.verificationKey
    ).signed(by: key)
  }

  private func question(_ token: String, by key: SigningKey) -> [UInt8] {
    Command(vehicle: vehicle, step: step, request: .status, token: token).sealed(by: key, to: controller.encryptionKey)
      .bytes
  }

  @Test("asks whether a rider is admitted once the token is good, and before the device's signature is looked at")
  mutating func admission() {
    let forged = question(token(by: SigningKey()), by: device)
    var asked: [String] = []
    let answer = reader.read(forged) { token in
      asked.append(token.subject)
      return true
    }
    #expect(answer == .unauthenticated(.unknownKey) && asked.isEmpty)

    let unsigned = question(token(by: operatorKey), by: SigningKey())
    let passedOver = reader.read(unsigned) { _ in false }
    #expect(passedOver == nil)
    let admitted = reader.read(unsigned) { _ in true }
    #expect(admitted == .unauthenticated(.badSignature))
  }

  @Test("remembers whose tokens are good, and that of no other token, whatever stands in it")
  mutating func memory() {
    let good = token(by: operatorKey)
    guard case .command(_, let token, _)? = reader.read(question(good, by: device), admits: { _ in true }) else {
      Issue.record("not read")
      return
    }
    #expect(token.subject == "ann")
    let parts = good.split(separator: ".")
    let other = parts.dropLast().joined(separator: ".") + "." + Base64URL.encode([UInt8](repeating: 7, count: 64))
    for _ in 0..<3 {
      let answer = reader.read(question(other, by: device)) { _ in true }
      #expect(answer == .unauthenticated(.badSignature))
    }
  }

  @Test("still reads a rider's command after more riders than it remembers")
  mutating func manyRiders() {
    for number in 0...CommandReader.remembered + 1 {
      let answer = reader.read(question(token(by: operatorKey, "rider \(number % 300)"), by: device)) { _ in true }
      guard case .command? = answer else {
        Issue.record("not read: \(number)")
        return
      }
    }
  }

  @Test("takes a header whose members come in another order")
  mutating func order() throws {
    let usual = String(decoding: question(token(by: operatorKey), by: device), as: UTF8.self)
    let signed = try EncryptedObject.open(usual, with: controller)
    let header = Base64URL.encode(
      Array(#"{"kid":"\#(controller.thumbprint)","cty":"JWT","typ":"step-command+jwe","alg":"HPKE-4"}"#.utf8))
    let sealed = try #require(HPKE.seal(signed, to: controller.encryptionKey.key, additional: Array(header.utf8)))
    let text = "\(header).\(Base64URL.encode(sealed.encapsulatedKey))..\(Base64URL.encode(sealed.ciphertext))."
    guard case .command? = reader.read(Array(text.utf8), admits: { _ in true }) else {
      Issue.record("not read")
      return
    }
  }

  @Test("sees in what cannot be a command that it is none, and never in what can")
  mutating func fault() {
    let good = question(token(by: operatorKey), by: device)
    #expect(good.withUnsafeBytes(CommandReader.fault) == nil)
    let short = ProtocolError.malformed("not a compact JWE with integrated encryption")
    for count in 0..<300 { #expect(good.prefix(count).withUnsafeBytes(CommandReader.fault) == short) }
    let large = good + [UInt8](repeating: UInt8(ascii: "A"), count: 8193 - good.count)
    #expect(large.withUnsafeBytes(CommandReader.fault) == .malformed("larger than 8192 bytes"))
    for index in [0, 1, good.count / 2, good.count - 1] {
      var other = good
      other[index] |= 0x80
      #expect(other.withUnsafeBytes(CommandReader.fault) == .malformed("not ASCII"))
    }
    func fault(_ lengths: Int...) -> ProtocolError? {
      let text = lengths.map { String(repeating: "A", count: $0) }.joined(separator: ".")
      return Array(text.utf8).withUnsafeBytes(CommandReader.fault)
    }
    for header in 0...50 { for ciphertext in 0...50 { #expect(fault(header, 43, 0, ciphertext, 0) == nil) } }
    for lengths in [(42, 0, 0), (44, 0, 0), (43, 1, 0), (43, 0, 1)] {
      #expect(fault(170, lengths.0, lengths.1, 400, lengths.2) == short)
    }
  }
}
