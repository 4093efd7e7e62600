import Domain
import Encoding
import Testing

@testable import StepProtocol

/// What travels on a link: frames, commands without their header, and answers for one device.
@Suite("Links") struct LinkTests {
  let device = SigningKey()
  let operatorKey = SigningKey()
  let controller = DecryptionKey()
  let vehicle = UUID.random()
  let left = StepID("left")!

  private func question() -> SealedCommand {
    let token = Token(
      issuer: "test", subject: "ann", vehicle: vehicle, steps: [left], notBefore: 0, expires: 100,
      device: device.verificationKey
    ).signed(by: operatorKey)
    return Command(vehicle: vehicle, step: left, request: .status, token: token)
      .sealed(by: device, to: controller.encryptionKey)
  }

  @Test("frames are read as they were written, in pieces of any size")
  func frames() throws {
    let all = [
      LinkFrame(.command, of: left, [1, 2, 3]), LinkFrame(.notice, of: nil, Array("a notice".utf8)),
      LinkFrame(.answer, of: left, [UInt8](repeating: 7, count: 8000)),
    ]
    for size in [1, 3, 1024, 9000] {
      var (stream, read) = (Frames(longest: LinkFrame.longest), [LinkFrame]())
      let bytes = all.flatMap(\.bytes)
      for start in stride(from: 0, to: bytes.count, by: size) {
        stream.append(bytes[start..<min(start + size, bytes.count)])
        while let frame = try stream.next() { if let frame = try LinkFrame(frame) { read.append(frame) } }
      }
      #expect(read == all)
    }
  }

  @Test("a kind of a later version is skipped, and anything else ends the link")
  func refused() throws {
    #expect(try LinkFrame([9]) == nil)
    #expect(try LinkFrame([9, 255]) == nil)
    for wrong in [
      [], [1], [1, 0], [1, 5, 108], [3, 4] + Array("left".utf8), [1, 4] + Array("Left".utf8), [1, 1, 0xFF],
    ]
      as [[UInt8]]
    {
      #expect(throws: MalformedMessage.self) { try LinkFrame(wrong) }
    }
    var stream = Frames(longest: LinkFrame.longest)
    stream.append(UInt16(LinkFrame.longest + 1).bigEndianBytes)
    #expect(throws: MalformedMessage.self) { try stream.next() }
  }

  @Test("a command is the same by both ways, and on a link nothing in it names the vehicle")
  func brief() throws {
    let (command, key) = (question(), controller.thumbprint)
    let brief = try #require(command.brief(for: controller.encryptionKey))
    #expect(EncryptedObject.text(ofBrief: brief, for: key) == command.bytes)
    #expect(brief.count < command.bytes.count * 3 / 4)
    // The same bytes for another vehicle are another command, which that vehicle cannot read.
    let other = DecryptionKey()
    let text = try #require(EncryptedObject.text(ofBrief: brief, for: other.thumbprint))
    let read = ReceivedCommand(text, controller: other, operatorKey: operatorKey.verificationKey)
    #expect(read == .unauthenticated(.undecipherable))
    #expect(EncryptedObject.text(ofBrief: [UInt8](repeating: 0, count: 32), for: key) == nil)
  }

  @Test("only the device that asked can read an answer, whose size tells nothing")
  func sealed() throws {
    let (command, other) = (question(), question())
    var reader = CommandReader(controller: controller, operatorKeys: [operatorKey.verificationKey])
    guard case .command? = reader.read(command.bytes, admits: { _ in true }) else {
      Issue.record("the question is good")
      return
    }
    let key = try #require(reader.answerKey)
    #expect(key == command.answerKey)
    let texts = ["{}", String(repeating: "a", count: 1024)].map { Array($0.utf8) }
    let answers = texts.map { key.seal($0) }
    #expect(answers[0].count == answers[1].count)
    for (text, answer) in zip(texts, answers) {
      let opened = try #require(command.answerKey.open(answer))
      #expect(opened.starts(with: text) && opened.dropFirst(text.count).allSatisfy { $0 == 0x20 })
      #expect(other.answerKey.open(answer) == nil)
      var changed = answer
      changed[answer.count / 2] ^= 1
      #expect(command.answerKey.open(changed) == nil)
    }
    // No key is used for two texts, not even for the same one.
    #expect(key.seal(texts[0]).prefix(16) != answers[0].prefix(16))
    #expect(key.open([]) == nil && key.open([UInt8](repeating: 0, count: 31)) == nil)
    // What cannot be decrypted has no answers.
    _ = reader.read(Array("rubbish".utf8), admits: { _ in true })
    #expect(reader.answerKey == nil)
  }

  @Test("the name changes every quarter of an hour, and clocks may differ by one")
  func named() {
    let key = controller.encryptionKey
    let name = LinkName.at(1_767_254_400, of: key)
    #expect(LinkName.at(1_767_254_400 + 899, of: key) == name)
    #expect(LinkName.at(1_767_254_400 + 900, of: key) != name)
    #expect(LinkName.at(1_767_254_400, of: DecryptionKey().encryptionKey) != name)
    for shift: Int64 in [-900, 0, 900] {
      #expect(LinkName.accepted(at: 1_767_254_400 + shift, of: key).contains(name))
    }
    #expect(!LinkName.accepted(at: 1_767_254_400 + 1800, of: key).contains(name))
  }
}
