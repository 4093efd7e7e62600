import Domain
import Glibc
import NDEF
import NFC
import SystemIO
import Tags
import TestSupport
import Testing

@Suite("Waiting for tags, and reading them") struct TagFieldTests {
  static let message = NDEFMessage([NDEFText("a step").record])

  private func type4() -> PlayedType4 {
    let tag = PlayedType4()
    tag.hold(Self.message.bytes)
    return tag
  }

  @Test("a tag is waited for up to the deadline, and how much time is left is told")
  func waiting() throws {
    let field = PlayedField(PlayedType2(.ntag213))
    field.remove(for: 3)
    var left: [Duration?] = []
    #expect(try field.waitForTag(until: .now + .seconds(20)) { left.append($0) } == field.tag.target)
    #expect(left.count == 3 && left.allSatisfy { $0! > .seconds(10) })
    field.remove(for: .max)
    #expect(throws: NFCError.noTag) { try field.waitForTag(until: .now + .milliseconds(2)) }
    field.interruptsRest = field.rests + 5
    #expect(throws: NFCError.interrupted) { try field.waitForTag(until: nil) { #expect($0 == nil) } }
  }

  @Test("a tag is waited for to be gone, or to be another one")
  func removal() throws {
    let field = PlayedField(PlayedType2(.ntag213))
    let uid = field.tag.target.uid
    #expect(throws: NFCError.noTag) { try field.waitForRemoval(of: uid, until: .now + .milliseconds(2)) }
    try field.waitForRemoval(of: TagUID([1, 2, 3, 4])!, until: nil)
    field.remove(for: 1)
    try field.waitForRemoval(of: uid, until: nil)
  }

  @Test("a tag of either type is read, though it does not answer at first")
  func reading() throws {
    let type2 = PlayedType2(.ntag213)
    _ = try TagWriter(PlayedField(type2), type2.target, patience: .zero).write(replacingAll: false) { _ in Self.message
    }
    for tag in [type2, type4()] as [any PlayedTag] {
      for fault in PlayedField.Fault.allCases {
        for number in 0..<3 {
          let field = PlayedField(tag)
          field.faults = [number: fault]
          let contents = try field.readTag(until: .now + .seconds(20))
          #expect(contents.target == tag.target)
          #expect(try contents.message.get() == Self.message)
        }
      }
    }
  }

  @Test("what is wrong with a tag's content is in the result")
  func content() throws {
    let empty = try PlayedField(PlayedType2(.ntag213)).readTag(until: .now)
    #expect(try empty.message.get().isEmpty)
    var bytes = SimulatedTag.factory(.ntag213)
    bytes.replaceSubrange(12..<16, with: [0, 0, 0, 0])
    let blank = try PlayedField(PlayedType2(.ntag213, bytes)).readTag(until: .now)
    #expect(throws: NDEFError.notFormatted) { try blank.message.get() }
    let torn = type4()
    torn.hold([0xD1, 0x01])
    let contents = try PlayedField(torn).readTag(until: .now)
    #expect(throws: NDEFError.self) { try contents.message.get() }
  }

  @Test("a page that an unknown chip does not show is told at once, and no fault is taken for one", arguments: 4..<12)
  func hidden(from first: Int) throws {
    let tag = PlayedType2(.ultralight)
    _ = try TagWriter(PlayedField(tag), tag.target, patience: .zero).write(replacingAll: false) { _ in Self.message }
    for fault in PlayedField.Fault.allCases {
      for number in 0..<12 {
        let field = PlayedField(tag)
        field.faults = [number: fault]
        tag.hiddenFrom = .max
        #expect(try field.readTag(until: .now + .seconds(20)).message.get() == Self.message)
        tag.hiddenFrom = first
        // The message has 13 bytes: it ends in page 8.
        guard first < 8 else { continue }
        let contents = try field.readTag(until: .now + .seconds(20))
        #expect(throws: NDEFError.pageRefused(first)) { try contents.message.get() }
      }
    }
  }

  @Test("a chip without FAST_READ is read all the same, and so is one with a UID of four bytes")
  func copies() throws {
    let slow = PlayedType2(.ntag215)
    slow.hasFastRead = false
    for tag in [slow, PlayedType2(.ntag213, hasShortUID: true)] {
      for fault in [nil] + PlayedField.Fault.allCases {
        for number in 0..<8 {
          let field = PlayedField(tag)
          if let fault { field.faults = [number: fault] }
          let writer = TagWriter(field, try #require(field.select()), patience: .seconds(20))
          _ = try writer.write(replacingAll: true) { _ in Self.message }
          #expect(try field.readTag(until: .now + .seconds(20)).message.get() == Self.message)
        }
      }
    }
  }

  @Test("a tag that never answers is told at the deadline")
  func silent() {
    let field = PlayedField(type4())
    field.faults = .init(uniqueKeysWithValues: (0..<10_000).map { ($0, .lostCommand) })
    #expect(throws: NFCError.noAnswer) { try field.readTag(until: .now + .milliseconds(2)) }
  }
}

/// With other programs in the place of stepctl-nfc.
@Suite("The reader") struct NFCReaderTests {
  private func open(_ program: String, _ interruption: Interruption) throws(NFCError) -> NFCReader {
    try NFCReader("some_driver", interruption: interruption, program: program)
  }

  @Test("a program that cannot be one of ours is told")
  func unusable() throws {
    let interruption = try Interruption.manual()
    #expect(throws: NFCError.program(.ended(.exited(1)))) { _ = try open("/bin/false", interruption) }
    // It says back what it was asked.
    #expect(throws: NFCError.program(.malformed)) { _ = try open("/bin/cat", interruption) }
    let missing = SystemError("start", "/none", code: ENOENT)
    #expect(throws: NFCError.program(.system(missing))) { _ = try open("/none", interruption) }
  }

  @Test("an interruption ends the wait for an answer")
  func interrupted() throws {
    let interruption = try Interruption.manual()
    interruption.interrupt()
    #expect(throws: NFCError.interrupted) { _ = try open("/bin/cat", interruption) }
  }

  @Test("every error says what it is about: the tag, or what all tags need")
  func kinds() {
    #expect(NFCError.isOfTheTag(NDEFError.readOnly) && NFCError.isOfTheTag(NFCError.noAnswer))
    #expect(NFCError.isOfTheTag(NTAG424Error.notGenuine))
    #expect(!NFCError.isOfTheTag(NFCError.interrupted) && !NFCError.isOfTheTag(NFCError.noTag))
    #expect(!NFCError.isOfTheTag(SystemError("poll", code: ENOMEM)))
  }
}
