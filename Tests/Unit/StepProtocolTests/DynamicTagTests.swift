import Cryptography
import Domain
import Encoding
import Testing

@testable import StepProtocol

@Suite("Dynamic tags") struct DynamicTagTests {
  static let path = "stepctl:5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90/left"
  static let e = "EF963FF7828658A599F3041510671E88"
  static let c = "94EED9EE65337086"
  static let uri = "\(path)?e=\(e)&c=\(c)"

  @Test("AES-CMAC is RFC 4493's")
  func rfc4493() {
    let vector = Vectors.rfc4493
    let message = vector.hexadecimal("message")
    for example in vector["examples"]!.array! {
      let count = Int(example["length"]!.integer!)
      #expect(AES128.mac(Array(message[..<count]), vector.hexadecimal("key")) == example.hexadecimal("mac"))
    }
  }

  @Test("the session key, the MAC and what they protect are AN12196's")
  func an12196() throws {
    for message in Vectors.an12196["messages"]!.array! {
      let keys = try #require(
        DynamicTag.Keys(
          metaRead: message.hexadecimal("meta_read_key"), fileRead: message.hexadecimal("file_read_key")))
      let uid = message.hexadecimal("uid")
      let counter = UInt32(message["counter"]!.integer!)
      let session = DynamicTag.sessionKey(keys.fileRead, (uid + [UInt8(counter), 0, 0])[...])
      #expect(hexadecimal(session) == message.text("session_key"))
      let tag = try DynamicTag(parsing: "\(Self.path)?e=\(message.text("e"))&c=\(message.text("c"))")
      #expect(tag.reading(with: keys) == DynamicTag.Reading(uid: TagUID(uid)!, counter: counter))
      #expect(tag.step == StepID("left"))
    }
  }

  @Test("any digit changed, or either key, and it is not genuine")
  func forged() throws {
    let zeros = [UInt8](repeating: 0, count: 16)
    let keys = DynamicTag.Keys(metaRead: zeros, fileRead: zeros)!
    let tag = try DynamicTag(parsing: Self.uri)
    #expect(tag.reading(with: keys) != nil)
    let other = [UInt8](repeating: 1, count: 16)
    #expect(tag.reading(with: DynamicTag.Keys(metaRead: other, fileRead: zeros)!) == nil)
    #expect(tag.reading(with: DynamicTag.Keys(metaRead: zeros, fileRead: other)!) == nil)
    let digits = Array(Self.uri)
    for index in digits.indices.suffix(51) where digits[index].isHexDigit && digits[index] != "c" {
      var changed = digits
      changed[index] = digits[index] == "0" ? "1" : "0"
      let forged = try DynamicTag(parsing: String(changed))
      #expect(forged.reading(with: keys) == nil, "\(index)")
    }
  }

  @Test("keys have 16 bytes")
  func keys() {
    let good = [UInt8](repeating: 0, count: 16)
    for wrong in [[], Array(good.dropLast()), good + [0], good + good] {
      #expect(DynamicTag.Keys(metaRead: wrong, fileRead: good) == nil)
      #expect(DynamicTag.Keys(metaRead: good, fileRead: wrong) == nil)
    }
  }

  @Test("what is written to a tag has zeros where the tag puts its digits")
  func template() throws {
    let left = StepID("left")!
    let uuid = UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!
    let (uri, encryptedOffset, macOffset) = DynamicTag.template(vehicle: uuid, step: left)
    var bytes = Array(uri.utf8)
    #expect(bytes[encryptedOffset..<(encryptedOffset + 32)].allSatisfy { $0 == 0x30 })
    #expect(bytes[macOffset..<(macOffset + 16)].allSatisfy { $0 == 0x30 })
    bytes.replaceSubrange(encryptedOffset..<(encryptedOffset + 32), with: Self.e.utf8)
    bytes.replaceSubrange(macOffset..<(macOffset + 16), with: Self.c.utf8)
    #expect(String(decoding: bytes, as: UTF8.self) == Self.uri)
  }

  @Test(
    "a text of another scheme is not one",
    arguments: [
      "", "stepctl", "stepctl:", "\(path)", "https://example.com/?e=\(e)&c=\(c)", " \(uri)",
      "STEPCTL:\(uri.dropFirst(8))",
    ])
  func others(text: String) {
    #expect(throws: DynamicTag.ParsingError.notDynamicTag) { try DynamicTag(parsing: text) }
    #expect(!DynamicTag.isMeant(by: text))
  }

  @Test(
    "one that is not in its form is refused",
    arguments: [
      "stepctl:?", "\(path)?", "\(path)?e=\(e)", "\(path)?c=\(c)&e=\(e)", "\(path)?e=\(e)&c=\(c)&x=1",
      "\(path)?e=\(e)&c=\(c)&", "\(path)?e=\(e)&c=\(c)#", "\(path)?e=\(e)&c=\(c)?", "\(path)?e=\(e)&c=\(c) ",
      "\(path)?e=\(e.dropLast())&c=\(c)", "\(path)?e=\(e)0&c=\(c)", "\(path)?e=\(e)&c=\(c)00",
      "\(path)?e=\(e.lowercased())&c=\(c)", "\(path)?e=\(e)&c=\(c.lowercased())", "\(path)?E=\(e)&c=\(c)",
      "stepctl:5F3C1C0E-7A0B-4F57-9A55-1F0F6C1B2A90/left?e=\(e)&c=\(c)", "stepctl:/left?e=\(e)&c=\(c)",
      "stepctl://5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90/left?e=\(e)&c=\(c)", "\(path)/x?e=\(e)&c=\(c)",
      "stepctl:5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90/?e=\(e)&c=\(c)", "\(path)%20?e=\(e)&c=\(c)",
      "\(path)?e=G\(e.dropFirst())&c=\(c)",
    ])
  func malformed(text: String) {
    do throws(DynamicTag.ParsingError) {
      _ = try DynamicTag(parsing: text)
      Issue.record("read \(text)")
    } catch {
      guard case .malformed = error else {
        Issue.record("\(error)")
        return
      }
    }
  }
}
