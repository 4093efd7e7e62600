import Domain
import NDEF
import NFC
import Operator
import SystemIO
import Tags
import TestSupport
import Testing

@Suite("Writing tags") struct TagWriterTests {
  static let chips: [Type2Chip] = [.ultralight, .ntag213, .ntag215, .ntag216]

  static func message(_ text: String) -> NDEFMessage { NDEFMessage([NDEFText(text).record]) }
  static let old = message("what it held before, a bit")
  static let new = message("what it is to hold now")

  /// A tag that holds the old message.
  private static func type2(_ chip: Type2Chip) throws -> PlayedType2 {
    let tag = PlayedType2(chip)
    try write(old, to: PlayedField(tag))
    return tag
  }

  @discardableResult
  private static func write(
    _ message: NDEFMessage = new, to field: PlayedField, patience: Duration = .seconds(20), replacingAll: Bool = false,
    isRehearsal: Bool = false, progress: @escaping (TagWriter.Progress) -> Void = { _ in }
  ) throws -> TagWriter.Report {
    let writer = TagWriter(field, field.select()!, patience: patience, progress: progress)
    return try writer.write(replacingAll: replacingAll, isRehearsal: isRehearsal) { _ in message }
  }

  private static func isWrite(_ command: [UInt8]) -> Bool { command[0] == 0xA2 || command.starts(with: [0x00, 0xD6]) }

  // MARK: - Type 2

  @Test("a message is written and read back, and a second time nothing is written", arguments: chips)
  func write(chip: Type2Chip) throws {
    let tag = try Self.type2(chip)
    let field = PlayedField(tag)
    let first = try Self.write(to: field)
    let writes = field.commands.count(where: Self.isWrite)
    #expect(first.chip == (chip == .ultralight ? nil : chip.name))
    #expect(first.changes == writes && first.unit == .pages)
    #expect(writes > 0 && tag.message == Self.new.bytes)
    #expect(try Self.write(to: field).changes == 0)
    #expect(field.commands.count(where: Self.isWrite) == writes)
  }

  @Test("a rehearsal says what would be written, and writes nothing", arguments: chips)
  func rehearsal(chip: Type2Chip) throws {
    let tag = try Self.type2(chip)
    let field = PlayedField(tag)
    let rehearsed = try Self.write(to: field, isRehearsal: true)
    #expect(!field.commands.contains(where: Self.isWrite))
    #expect(tag.message == Self.old.bytes)
    #expect(try Self.write(to: field) == rehearsed)
  }

  @Test(
    "after any fault of any command, the message is written, and no page more often than it takes", arguments: chips)
  func everyFault(chip: Type2Chip) throws {
    let plain = PlayedField(try Self.type2(chip))
    try Self.write(to: plain)
    let writes = plain.commands.count(where: Self.isWrite)
    for fault in PlayedField.Fault.allCases {
      for number in 0..<plain.commands.count {
        let tag = try Self.type2(chip)
        let field = PlayedField(tag, seed: UInt64(number))
        field.faults = [number: fault]
        field.hasLeft = {
          #expect([Self.old.bytes, [], Self.new.bytes].contains(tag.message), "\(fault) of command \(number)")
        }
        _ = try Self.write(to: field)
        #expect(tag.message == Self.new.bytes, "\(fault) of command \(number)")
        // What was not written, or in part, is written again; what was written is not.
        let again = Self.isWrite(plain.commands[number]) && fault != .lostAnswer ? 1 : 0
        // A torn page of one that is written twice may be put right by its second writing alone.
        let count = field.commands.count(where: Self.isWrite)
        #expect((writes...writes + again).contains(count) || fault == .torn && count < writes, "\(fault) of \(number)")
      }
    }
  }

  @Test("whatever goes wrong, a tag holds the old message, none, or the new one, which is written in the end")
  func anyFaults() throws {
    for seed in 0..<400 as Range<UInt64> {
      var random = SplitMix(seed)
      let chip = Self.chips.randomElement(using: &random)!
      let tag = try Self.type2(chip)
      let field = PlayedField(tag, seed: seed)
      field.absence = Int.random(in: 0...4, using: &random)
      for _ in 0..<Int.random(in: 1...8, using: &random) {
        field.faults[Int.random(in: 0..<60, using: &random)] = PlayedField.Fault.allCases.randomElement(using: &random)!
      }
      field.hasLeft = {
        #expect([Self.old.bytes, [], Self.new.bytes].contains(tag.message), "seed \(seed)")
      }
      _ = try Self.write(to: field)
      #expect(tag.message == Self.new.bytes, "seed \(seed)")
    }
  }

  @Test("the message is composed once, from what the tag held before it was torn")
  func composedOnce() throws {
    let tag = try Self.type2(.ntag213)
    let field = PlayedField(tag)
    // The third write, when the tag is empty.
    let plain = PlayedField(try Self.type2(.ntag213))
    try Self.write(to: plain)
    let third = plain.commands.indices.filter { Self.isWrite(plain.commands[$0]) }[2]
    field.faults = [third: .leaves]
    var given: [NDEFMessage?] = []
    let writer = TagWriter(field, field.select()!, patience: .seconds(20))
    _ = try writer.write(replacingAll: false) { old in
      given.append(old)
      return NDEFMessage(old!.records + Self.new.records)
    }
    #expect(given == [Self.old])
    #expect(tag.message == NDEFMessage(Self.old.records + Self.new.records).bytes)
  }

  @Test("another tag that comes back is told, and nothing is written to it")
  func otherTag() throws {
    let tag = try Self.type2(.ntag213)
    let other = PlayedType2(.ntag213, uid: 0x99)
    let untouched = other.memory
    let field = PlayedField(tag)
    field.faults = [4: .leaves]
    field.successor = other
    #expect(throws: NFCError.otherTag(expected: tag.target.uid, found: other.target.uid)) { try Self.write(to: field) }
    #expect(other.memory == untouched)
  }

  @Test("a tag that does not come back in time is told, and whoever waits hears how long it may take")
  func gone() throws {
    let field = PlayedField(try Self.type2(.ntag213))
    field.faults = [5: .torn]
    field.absence = .max
    var waits: [Duration] = []
    #expect(throws: NFCError.tagGone(field.tag.target.uid)) {
      try Self.write(to: field, patience: .seconds(1)) { if case .waiting(let left) = $0 { waits.append(left) } }
    }
    #expect(!waits.isEmpty && waits.allSatisfy { $0 > .zero && $0 <= .seconds(1) })
    #expect(waits == waits.sorted(by: >))
  }

  @Test("an interruption ends the wait for a tag that is away")
  func interrupted() throws {
    let field = PlayedField(try Self.type2(.ntag213))
    field.faults = [5: .leaves]
    field.absence = .max
    field.interruptsRest = 3
    #expect(throws: NFCError.interrupted) { try Self.write(to: field) }
  }

  @Test("a page that acknowledges a write and ignores it is told, and the tag is left empty", arguments: 6...11)
  func deafPage(page: Int) throws {
    let tag = try Self.type2(.ntag213)
    tag.deafPages = [page]
    let new = Self.message("NEW TEXT WITHOUT WORDS OF THE OLD")
    #expect(throws: NFCError.refused(page: page)) { try Self.write(new, to: PlayedField(tag)) }
    #expect(tag.message == [])
  }

  @Test("where the page of the length ignores writes, it is that page which is told, and all stays as it was")
  func deafLength() throws {
    let tag = try Self.type2(.ntag213)
    tag.deafPages = [5]
    let before = tag.memory
    #expect(throws: NFCError.refused(page: 5)) { try Self.write(to: PlayedField(tag)) }
    #expect(tag.memory == before)
  }

  @Test("while pages ignore writes, the tag holds nothing or what it held, at each moment", arguments: chips)
  func neverWrong(chip: Type2Chip) throws {
    for page in 4...15 {
      let tag = try Self.type2(chip)
      tag.deafPages = [page]
      tag.hasTaken = { #expect([Self.old.bytes, [], Self.new.bytes].contains(tag.message), "page \(page)") }
      _ = try? Self.write(to: PlayedField(tag))
    }
  }

  @Test("a page that refuses a write is told, and not the one of the length")
  func refusedPage() throws {
    let tag = try Self.type2(.ntag213)
    tag.refusedPages = [8]
    let new = Self.message("NEW TEXT WITHOUT WORDS OF THE OLD")
    #expect(throws: NFCError.refused(page: 8)) { try Self.write(new, to: PlayedField(tag)) }
    #expect(tag.message == [])
  }

  @Test("a password is found out before anything is written", arguments: [false, true])
  func password(isForReading: Bool) throws {
    for chip in [Type2Chip.ntag213, .ntag215, .ntag216] {
      for first in [0, 4, 5, 8, 9, chip.configuration!, chip.configuration! + 1, 0xFF] {
        let tag = try Self.type2(chip)
        tag.protect(from: first, reading: isForReading)
        let before = tag.memory
        let field = PlayedField(tag)
        if first < chip.userPages.upperBound {
          #expect(throws: NDEFError.passwordProtected(page: first)) { try Self.write(to: field) }
          #expect(throws: NDEFError.passwordProtected(page: first)) {
            try TagWriter(field, tag.target, patience: .zero).checkLockable()
          }
          #expect(tag.memory == before && !field.commands.contains(where: Self.isWrite))
          guard isForReading else { continue }
          let contents = try PlayedField(tag).readTag(until: .now)
          #expect(throws: NDEFError.passwordProtected(page: first)) { try contents.message.get() }
        } else {
          try Self.write(to: field)
          #expect(tag.message == Self.new.bytes)
        }
      }
    }
  }

  @Test("where the lock bits of an unknown chip cannot be read, nothing is written")
  func hiddenLocks() throws {
    // It does not say its version here. Page 36 is right behind its data area.
    let tag = try Self.type2(.ultralightEV1Large)
    tag.hiddenFrom = 36
    let field = PlayedField(tag)
    let long = Self.message("a text that is so long that it goes beyond page 15")
    for isRehearsal in [true, false] {
      #expect(throws: NDEFError.pageRefused(36)) { try Self.write(long, to: field, isRehearsal: isRehearsal) }
      #expect(tag.message == Self.old.bytes && !field.commands.contains(where: Self.isWrite))
    }
    tag.hiddenFrom = .max
    try Self.write(long, to: field)
    #expect(tag.message == long.bytes)
  }

  @Test("a password that is found after any fault is the same, and no fault is taken for one")
  func passwordAfterFaults() throws {
    for seed in 0..<200 as Range<UInt64> {
      var random = SplitMix(seed)
      let tag = try Self.type2(.ntag213)
      let isProtected = seed % 2 == 0
      if isProtected { tag.protect(from: 8, reading: true) }
      let field = PlayedField(tag, seed: seed)
      for _ in 0..<3 {
        field.faults[Int.random(in: 0..<30, using: &random)] = PlayedField.Fault.allCases.randomElement(using: &random)!
      }
      if isProtected {
        #expect(throws: NDEFError.passwordProtected(page: 8)) { try Self.write(to: field) }
        #expect(tag.message == Self.old.bytes)
      } else {
        try Self.write(to: field)
        #expect(tag.message == Self.new.bytes)
      }
    }
  }

  @Test("a tag that never answers is given up")
  func silent() throws {
    let tag = try Self.type2(.ntag213)
    let field = PlayedField(tag)
    field.faults = .init(uniqueKeysWithValues: (0..<1000).map { ($0, .lostCommand) })
    #expect(throws: NFCError.noAnswer) { try Self.write(to: field) }
    #expect(field.commands.count < 100)
    #expect(tag.message == Self.old.bytes)
  }

  @Test("progress is told before the first page is written, and up to the last")
  func progress() throws {
    let field = PlayedField(try Self.type2(.ntag213))
    var told: [TagWriter.Progress] = []
    let report = try Self.write(to: field) { progress in
      if told.isEmpty { #expect(!field.commands.contains(where: Self.isWrite)) }
      told.append(progress)
    }
    #expect(told == (0...report.changes).map { .written($0, of: report.changes) })
  }

  @Test("what cannot be written is told before anything is")
  func refusals() throws {
    let long = Self.message(String(repeating: "n", count: 300))
    let field = PlayedField(try Self.type2(.ntag213))
    #expect(throws: NDEFError.tooSmall(needed: long.bytes.count, available: 137)) { try Self.write(long, to: field) }
    #expect(!field.commands.contains(where: Self.isWrite))
  }

  /// A chip without a container.
  private static func unformatted(_ chip: Type2Chip) -> [UInt8] {
    var bytes = SimulatedTag.factory(chip)
    let end = chip.userPages.upperBound * Type2Memory.pageSize
    bytes.replaceSubrange(12..<end, with: repeatElement(0, count: end - 12))
    return bytes
  }

  @Test("a blank tag that is torn while it is formatted is written to the end", arguments: [0x00, 0x5A] as [UInt8])
  func formatting(data: UInt8) throws {
    var bytes = Self.unformatted(.ntag213)
    for address in 16..<160 { bytes[address] = data }
    let plain = PlayedField(PlayedType2(.ntag213, bytes))
    try Self.write(to: plain, replacingAll: data != 0)
    for number in plain.commands.indices {
      for seed in 0..<4 as Range<UInt64> {
        let tag = PlayedType2(.ntag213, bytes)
        let field = PlayedField(tag, seed: seed)
        field.faults = [number: .torn]
        let report = try Self.write(to: field, replacingAll: data != 0)
        #expect(tag.message == Self.new.bytes, "command \(number), seed \(seed)")
        #expect(report.losses == (data == 0 ? [] : [.pages(36)]))
      }
    }
  }

  @Test(
    "another system's card is left as it is, whichever page it uses",
    arguments: [Type2Chip.ntag213, .ntag215, .ntag216])
  func otherSystem(chip: Type2Chip) throws {
    for page in [4, 5, 15, 16, chip.userPages.upperBound - 1] {
      var bytes = Self.unformatted(chip)
      bytes[page * 4 + 3] = 0x01
      let tag = PlayedType2(chip, bytes)
      let before = tag.memory
      let field = PlayedField(tag)
      for isRehearsal in [false, true] {
        #expect(throws: NDEFError.inUse(pages: 1)) { try Self.write(to: field, isRehearsal: isRehearsal) }
      }
      #expect(tag.memory == before && !field.commands.contains(where: Self.isWrite))
      #expect(try Self.write(to: field, replacingAll: true, isRehearsal: true).losses == [.pages(1)])
      #expect(try Self.write(to: field, replacingAll: true).losses == [.pages(1)])
      #expect(tag.message == Self.new.bytes)
      #expect(try Self.write(to: field, replacingAll: true).losses == [])
    }
  }

  @Test("a locked tag is read-only, and keeps a message that it holds", arguments: [Type2Chip.ntag213, .ntag215])
  func locked(chip: Type2Chip) throws {
    let tag = try Self.type2(chip)
    let field = PlayedField(tag)
    let writer = TagWriter(field, field.select()!, patience: .seconds(20))
    try writer.checkLockable()
    #expect(!field.commands.contains(where: Self.isWrite))
    let count = field.commands.count
    field.faults = [count + 2: .torn, count + 6: .lostAnswer, count + 9: .leaves]
    try writer.lock()
    #expect(throws: NDEFError.readOnly) { try Self.write(to: field) }
    #expect(try Self.write(Self.old, to: field).changes == 0)
    #expect(tag.message == Self.old.bytes)
  }

  @Test("a tag of neither type is told by its answer to the selection")
  func otherType() {
    let field = PlayedField(PlayedType2(.ntag213))
    let target = NFCTarget(atqa: [0x00, 0x04], sak: 0x08, uid: [1, 2, 3, 4], ats: [])!
    let writer = TagWriter(field, target, patience: .zero)
    #expect(throws: NFCError.unsupportedTag(sak: 0x08)) { try writer.write(replacingAll: false) { _ in Self.new } }
    #expect(throws: NFCError.unsupportedTag(sak: 0x08)) { try writer.lock() }
  }

  // MARK: - Type 4

  @Test("a Type 4 tag is written after any faults, and holds the old message, none, or the new one at each moment")
  func type4() throws {
    for seed in 0..<200 as Range<UInt64> {
      var random = SplitMix(seed)
      let tag = PlayedType4()
      tag.hold(Self.old.bytes)
      let field = PlayedField(tag, seed: seed)
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        field.faults[Int.random(in: 0..<30, using: &random)] = PlayedField.Fault.allCases.randomElement(using: &random)!
      }
      let new = seed % 2 == 0 ? Self.new : Self.message(String(repeating: "n", count: 300))
      field.hasLeft = { #expect([Self.old.bytes, [], new.bytes].contains(tag.message), "seed \(seed)") }
      let report = try Self.write(new, to: field)
      #expect(report.unit == .bytes && report.chip == nil)
      #expect(tag.message == new.bytes, "seed \(seed)")
    }
  }

  @Test("a Type 4 tag whose message is another one at each activation is never written, whatever goes wrong")
  func changing() throws {
    let shop = Self.message("https://x.example/t?c=00000000")
    func tag() -> PlayedType4 {
      let tag = PlayedType4()
      tag.hold(shop.bytes)
      tag.counterAt = shop.bytes.count - 8
      return tag
    }
    for isRehearsal in [false, true] {
      for replacingAll in [false, true] {
        let field = PlayedField(tag())
        #expect(throws: NFCError.changingMessage) {
          try Self.write(to: field, replacingAll: replacingAll, isRehearsal: isRehearsal)
        }
        #expect(field.restarts == 1 && !field.commands.contains(where: Self.isWrite))
      }
    }
    for seed in 0..<200 as Range<UInt64> {
      var random = SplitMix(seed)
      let tag = tag()
      let field = PlayedField(tag, seed: seed)
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        field.faults[Int.random(in: 0..<20, using: &random)] = PlayedField.Fault.allCases.randomElement(using: &random)!
      }
      #expect(throws: NFCError.changingMessage, "seed \(seed)") { try Self.write(to: field) }
      #expect(tag.message == shop.bytes && !field.commands.contains(where: Self.isWrite), "seed \(seed)")
    }
  }

  @Test("a Type 4 tag that holds the message is neither written nor put out")
  func unchangedType4() throws {
    let tag = PlayedType4()
    tag.hold(Self.new.bytes)
    let field = PlayedField(tag)
    #expect(try Self.write(to: field).changes == 0)
    #expect(field.restarts == 0 && !field.commands.contains(where: Self.isWrite))
  }

  @Test("a Type 4 tag that ignores what is written is given up, and one that is too small is told")
  func type4Refusals() throws {
    let deaf = PlayedType4()
    deaf.hold(Self.old.bytes)
    deaf.ignoresWrites = true
    #expect(throws: NFCError.ignored) { try Self.write(to: PlayedField(deaf)) }
    #expect(deaf.message == [])
    let small = PlayedField(PlayedType4(size: 20))
    #expect(throws: NDEFError.tooSmall(needed: Self.new.bytes.count, available: 18)) { try Self.write(to: small) }
    #expect(!small.commands.contains(where: Self.isWrite))
    let writer = TagWriter(small, small.select()!, patience: .zero)
    #expect(throws: NFCError.unsupported("this is a Type 4 tag: stepctl can lock tags of Type 2 only")) {
      try writer.lock()
    }
  }
}
