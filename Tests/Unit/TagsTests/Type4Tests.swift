import NDEF
import Testing

@testable import Tags

/// A Type 4 tag: its files, and what it answers.
struct SimulatedType4Tag {
  var container: [UInt8]
  var file: [UInt8]
  /// The last byte of the application's name.
  var version: UInt8 = 0x01
  /// At most that many bytes in an answer, whatever was asked for.
  var maximumAnswer = 255
  private var isApplication = false
  private var selected: UInt16 = 0
  private(set) var commands: [[UInt8]] = []

  init(container: String, file: [UInt8]) {
    self.container = hex(container)
    self.file = file
  }

  mutating func answer(_ command: [UInt8]) -> [UInt8] {
    commands.append(command)
    let offset = Int(command[2]) << 8 | Int(command[3])
    switch (command[1], command[2]) {
    case (0xA4, 0x04):
      isApplication = Array(command[5..<12]) == hex("d276000085 01") + [version]
      return hex(isApplication ? "6f00 9000" : "6a82")
    case (0xA4, 0x00):
      selected = UInt16(command[5]) << 8 | UInt16(command[6])
      let isThere = isApplication && (selected == 0xE103 || selected == 0xE104)
      return hex(isThere && command[3] == (version == 1 ? 0x0C : 0x00) ? "9000" : "6a82")
    case (0xB0, _):
      let content = selected == 0xE103 ? container : file
      guard offset < content.count else { return hex("6b00") }
      return Array(content[offset...].prefix(Int(command[4])).prefix(maximumAnswer)) + hex("9000")
    case (0xD6, _):
      let data = command.dropFirst(5)
      guard selected == 0xE104, data.count == command[4], offset + data.count <= file.count else { return hex("6a84") }
      file.replaceSubrange(offset..<offset + data.count, with: data)
      return hex("9000")
    default: return hex("6d00")
    }
  }

  mutating func read(maximumData: Int = 240, takesExcessiveLength: Bool = false) throws -> Type4Contents {
    var reading = Type4Reading(maximumData: maximumData, takesExcessiveLength: takesExcessiveLength)
    var last: [UInt8]?
    while true {
      switch try reading.next(after: last) {
      case .send(let command): last = answer(command)
      case .done(let contents): return contents
      }
    }
  }
}

@Suite("Type 4 tags") struct Type4Tests {
  static let plain = "000f 20 003b 0034 0406 e104 0400 00 00"

  func file(_ message: [UInt8], size: Int = 1024) -> [UInt8] {
    [UInt8(message.count >> 8), UInt8(message.count & 0xFF)] + message
      + Array(repeating: 0, count: size - 2 - message.count)
  }

  @Test("reads with the commands of the specification")
  func commands() throws {
    let bytes = message(bytes: 79).bytes
    var tag = SimulatedType4Tag(container: Self.plain, file: file(bytes))
    #expect(try tag.read().message == bytes)
    #expect(
      tag.commands == [
        hex("00a4040007d276000085010100"), hex("00a4000c02e103"), hex("00b000000f"), hex("00a4000c02e104"),
        hex("00b0000002"), hex("00b000023b"), hex("00b0003d14"),
      ])
  }

  @Test("reads all mapping versions, and answers of any size", arguments: [1, 2, 20, 255])
  func versions(maximumAnswer: Int) throws {
    let bytes = message(bytes: 300).bytes
    for (container, version) in [(Self.plain, 1), ("000f 10 00ff 00ff 0406 e104 0400 00 00", 0)] as [(String, UInt8)] {
      var tag = SimulatedType4Tag(container: container, file: file(bytes))
      tag.version = version
      tag.maximumAnswer = maximumAnswer
      #expect(try tag.read().message == bytes)
    }
    var extended = SimulatedType4Tag(
      container: "0011 30 00ff 00ff 0608 e104 00000400 00 00",
      file: [0, 0, 1, 44] + bytes + [UInt8](repeating: 0, count: 720))
    extended.maximumAnswer = maximumAnswer
    let contents = try extended.read()
    #expect(contents.message == bytes)
    #expect(contents.file.capacity == 1020)
  }

  @Test("an empty file is an empty message")
  func empty() throws {
    var tag = SimulatedType4Tag(container: Self.plain, file: file([]))
    #expect(try tag.read().message == [])
  }

  @Test(
    "says what is wrong with a tag",
    arguments: [
      ("000f 40 003b 0034 0406 e104 0400 00 00", NDEFError.unsupportedVersion(major: 4, minor: 0)),
      ("000f 20 000e 0034 0406 e104 0400 00 00", .malformedTag("answers of at most 14 bytes", offset: 3)),
      ("000f 20 003b 0000 0406 e104 0400 00 00", .malformedTag("commands without data", offset: 5)),
      ("000f 20 003b 0034 0506 e104 0400 00 00", .malformedTag("no NDEF file control block", offset: 7)),
      ("000e 20 003b 0034 0406 e104 0400 00 00", .malformedTag("no NDEF file control block", offset: 7)),
      ("0011 20 003b 0034 0608 e104 00000400 00 00", .malformedTag("no NDEF file control block", offset: 7)),
      ("000f 20 003b 0034 0406 e103 0400 00 00", .malformedTag("a reserved file identifier", offset: 9)),
      ("000f 20 003b 0034 0406 e104 0004 00 00", .malformedTag("a file of 4 bytes", offset: 11)),
      ("000f 20 003b 0034 0406 e104 0400 80 00", .unreadable(access: 0x80)),
      ("000f 20 003b 0034 0406 e105 0400 00 00", .refused("select its file E105", status: 0x6A82)),
      ("000f 20 003b 0034 0406 e104 0010 00 00", .malformedTag("a message of 79 bytes where 14 fit", offset: 0)),
      ("000f 20 003b 0034", .refused("read at byte 7", status: 0x6B00)),
    ])
  func errors(container: String, error: NDEFError) {
    var tag = SimulatedType4Tag(container: container, file: file(message(bytes: 79).bytes))
    #expect(throws: error) { try tag.read() }
  }

  @Test("a tag without the application, and answers that are none")
  func answers() throws {
    var tag = SimulatedType4Tag(container: Self.plain, file: file([]))
    tag.version = 0x07
    #expect(throws: NDEFError.refused("select its NDEF application", status: 0x6A82)) { try tag.read() }
    var reading = Type4Reading()
    _ = try reading.next(after: nil)
    #expect(throws: NDEFError.malformedAnswer("1 bytes without a status word")) { try reading.next(after: [0x90]) }
    _ = try reading.next(after: hex("9000"))
    _ = try reading.next(after: hex("9000"))
    #expect(throws: NDEFError.malformedAnswer("16 bytes where 15 were asked for")) {
      try reading.next(after: [UInt8](repeating: 0, count: 16) + hex("9000"))
    }
    #expect(throws: NDEFError.malformedAnswer("0 bytes where 15 were asked for")) {
      try reading.next(after: hex("9000"))
    }
  }

  @Test("a torn tag is empty, or holds the old message or the new one; or is refused within the length itself")
  func torn() throws {
    for (oldSize, newSize) in [(0, 79), (79, 300), (300, 79), (258, 513)] {
      let old = oldSize == 0 ? [] : message(bytes: oldSize, "o").bytes
      let new = message(bytes: newSize, "n")
      var tag = SimulatedType4Tag(container: Self.plain, file: file(old))
      var writing = try Type4Writing(new, to: tag.read())
      var last: [UInt8]?
      while case .send(let command) = try writing.next(after: last) {
        let offset = Int(command[2]) << 8 | Int(command[3])
        // Only the first bytes of a command arrive, and after them rubbish.
        for count in 0...command.count - 5 {
          var left = tag
          left.file.replaceSubrange(offset..<offset + count, with: command[5..<5 + count])
          let held = try? left.read().message
          let isLength = offset == 0
          let message = held.flatMap { try? NDEFMessage(parsing: $0).bytes }
          #expect([old, [], new.bytes].contains(held) || isLength && message == nil, "\(oldSize) to \(newSize)")
        }
        last = tag.answer(command)
      }
      #expect(try tag.read().message == new.bytes)
      // What is right already is left alone.
      var again = try Type4Writing(new, to: tag.read())
      if case .send = try again.next(after: nil) { Issue.record("nothing was to be written") }
    }
  }

  @Test("a length that the file cannot hold is an error to a reader; a writer begins with a length of 0")
  func excessive() throws {
    let new = message(bytes: 79)
    for length in [1023, 0xFFFF] {
      var tag = SimulatedType4Tag(container: Self.plain, file: file([]))
      tag.file.replaceSubrange(0..<2, with: [UInt8(length >> 8), UInt8(length & 0xFF)])
      #expect(throws: NDEFError.malformedTag("a message of \(length) bytes where 1022 fit", offset: 0)) {
        try tag.read()
      }
      let contents = try tag.read(takesExcessiveLength: true)
      #expect(contents.message == [] && contents.excessiveLength == length)
      let read = tag.commands.count
      var writing = try Type4Writing(new, to: contents)
      var last: [UInt8]?
      while case .send(let command) = try writing.next(after: last) { last = tag.answer(command) }
      #expect(tag.commands[read] == hex("00d60000020000"))
      #expect(try tag.read().message == new.bytes)
    }
  }

  @Test("a large file is used as far as offsets of 15 bits reach")
  func largest() throws {
    var tag = SimulatedType4Tag(container: "000f 20 00ff 00ff 0406 e104 fffe 00 00", file: file([]))
    tag.file += [UInt8](repeating: 0, count: 0xFFFE - tag.file.count)
    func message(bytes count: Int) -> NDEFMessage {
      NDEFMessage([NDEFRecord(.media, type: hex("61"), payload: [UInt8](repeating: 7, count: count - 7))])
    }
    let contents = try tag.read()
    #expect(throws: NDEFError.tooSmall(needed: 0x7FFF, available: 0x7FFE)) {
      try Type4Writing(message(bytes: 0x7FFF), to: contents)
    }
    var writing = try Type4Writing(message(bytes: 0x7FFE), to: contents)
    var last: [UInt8]?
    while case .send(let command) = try writing.next(after: last) { last = tag.answer(command) }
    #expect(try tag.read().message == message(bytes: 0x7FFE).bytes)
    // A first bit that is set would make the offset a file's identifier (ISO/IEC 7816-4).
    #expect(tag.commands.allSatisfy { $0[1] == 0xA4 || $0[2] < 0x80 })
  }

  @Test("refuses to write what is read-only, protected or too small")
  func refusals() throws {
    func write(_ container: String) throws {
      var tag = SimulatedType4Tag(container: container, file: file([]))
      _ = try Type4Writing(message(bytes: 79), to: tag.read())
    }
    #expect(throws: NDEFError.readOnly) { try write("000f 20 003b 0034 0406 e104 0400 00 ff") }
    #expect(throws: NDEFError.writeProtected(access: 0x80)) { try write("000f 20 003b 0034 0406 e104 0400 00 80") }
    #expect(throws: NDEFError.tooSmall(needed: 79, available: 78)) {
      try write("000f 20 003b 0034 0406 e104 0050 00 00")
    }
  }
}
