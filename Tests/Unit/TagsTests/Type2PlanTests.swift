import Encoding
import NDEF
import TestSupport
import Testing

@testable import Tags

@Suite("Type 2 plans") struct Type2PlanTests {
  @Test("our own message on a new NTAG213 takes 22 writes, the same again none, another letter three")
  func count() throws {
    let memory = Type2Memory(factory(.ntag213))
    let plan = try write(message(bytes: 79), to: memory, chip: .ntag213)
    #expect(plan.writes.count == 22)
    #expect(plan.writes.first == Type2Plan.Write(page: 5, bytes: hex("340300d1")))
    #expect(plan.writes.last == Type2Plan.Write(page: 5, bytes: hex("34034fd1")))
    #expect(try write(message(bytes: 79), to: plan.memory, chip: .ntag213).writes.isEmpty)
    var text = [Character](repeating: "a", count: 72)
    text[40] = "b"
    let other = NDEFMessage([NDEFText(String(text)).record])
    #expect(try write(other, to: plan.memory, chip: .ntag213).writes.map(\.page) == [5, 17, 5])
  }

  @Test("asks for the pages that it needs, the lock bytes among them")
  func needs() throws {
    let image = Type2Memory(factory(.ntag213))
    var memory = Type2Memory()
    var asked: [Range<Int>] = []
    while case .read(let pages) = try Type2Plan.write(message(bytes: 79), to: memory, chip: .ntag213) {
      asked.append(pages)
      for page in pages { memory[page] = image[page] }
    }
    #expect(asked == [0..<4, 4..<5, 5..<6, 6..<26, 40..<42])
  }

  @Test("nothing is planned where a password protects a page that would change", arguments: [false, true])
  func password(isForReading: Bool) throws {
    for chip in [Type2Chip.ntag213, .ntag215, .ntag216] {
      let configuration = try #require(chip.configuration)
      #expect(configuration == chip.pages - 4)
      let last = try write(message(bytes: 79), to: Type2Memory(factory(chip)), chip: chip).writes.map(\.page).max()!
      #expect(last >= 24)
      for first in 0...configuration + 1 {
        var bytes = factory(chip)
        bytes[configuration * 4 + 3] = UInt8(first)
        var memory = Type2Memory(bytes)
        if isForReading {
          memory = Type2Memory(Array(bytes[..<min(first * 4, bytes.count)]))
          memory.refusedFrom = first
        }
        // The lock bits of the message's pages are behind the user's pages.
        let isNeeded = first <= last || isForReading && first <= chip.dynamicLocks!.page
        if isNeeded {
          #expect(throws: NDEFError.passwordProtected(page: first)) {
            try write(message(bytes: 79), to: memory, chip: chip)
          }
        } else {
          #expect(try !write(message(bytes: 79), to: memory, chip: chip).writes.isEmpty)
        }
        // Locking sets the lock bits, too.
        if first <= chip.dynamicLocks!.page {
          #expect(throws: NDEFError.passwordProtected(page: first)) { try lock(memory, chip: chip) }
        } else {
          #expect(try !lock(memory, chip: chip).writes.isEmpty)
        }
      }
    }
  }

  @Test("nothing is planned where the chip shows its UID or its counter in place of the message")
  func mirror() throws {
    let new = message(bytes: 79)
    let lengths: [(chip: Type2Chip, byte: UInt8, length: Int)] =
      [.ntag213, .ntag215, .ntag216].flatMap { chip in
        zip([0, 14, 6, 21], UInt8(0)...).map { (chip, $1 << 6, $0) }
      } + [.ntag212].map { ($0, 0x00, 14) } + [.ultralightEV1Large].map { ($0, 0xC0, 0) }
    for (chip, byte, length) in lengths {
      let configuration = try #require(chip.configuration)
      let plain = try write(new, to: Type2Memory(factory(chip)), chip: chip)
      // The lock bits' block, and the message with its terminator.
      let end = (chip == .ntag213 ? 21 : 16) + 2 + 79 + 1
      for address in 0..<chip.userPages.upperBound * 4 - 21 {
        var bytes = factory(chip)
        bytes[configuration * 4] = byte | UInt8(address % 4) << 4 | 0x04
        bytes[configuration * 4 + 2] = UInt8(address / 4)
        let memory = Type2Memory(bytes)
        if address >= 16, address < end, length > 0 {
          #expect(throws: NDEFError.mirrored(page: address / 4)) { try write(new, to: memory, chip: chip) }
          #expect(throws: NDEFError.mirrored(page: address / 4)) {
            try write(new, to: memory, chip: chip, replacingAll: true)
          }
        } else {
          #expect(try write(new, to: memory, chip: chip).writes == plain.writes)
        }
        #expect(throws: Never.self) { try lock(memory, chip: chip) }
      }
    }
  }

  @Test(
    "the key that writing a MIFARE Ultralight C needs is found out, and nothing is taken for it that is something else")
  func key() throws {
    let plain = Type2Memory(Fixtures.tag("guidoz_Empty_NTAG203"))
    let last = try write(message(bytes: 79), to: plain, chip: nil).writes.map(\.page).max()!
    for first in UInt8.min...UInt8.max {
      for (rest, access, isKnown) in [
        ("000000", "01000000", true), ("000000", "00000000", false), ("01ffff", "01000000", false),
      ] {
        var memory = plain
        (memory[42], memory[43]) = ([first] + hex(rest), hex(access))
        if isKnown, first >= 3, first <= last {
          #expect(throws: NDEFError.passwordProtected(page: Int(first))) {
            try write(message(bytes: 79), to: memory, chip: nil)
          }
        } else {
          #expect(throws: Never.self) { try write(message(bytes: 79), to: memory, chip: nil) }
        }
      }
    }
    // On a larger tag these pages are the user's.
    var large = Type2Memory(factory(.ntag215))
    (large[42], large[43]) = (hex("08000000"), hex("01000000"))
    #expect(throws: Never.self) { try write(message(bytes: 79), to: large, chip: nil) }
  }

  @Test("a control block that says nothing is read over, and never written over")
  func malformedControl() throws {
    for (data, reason) in [
      ("0102a00c", "a control block of 2 bytes"), ("0203a00c30", "a control block with pages of no size"),
    ] {
      let memory = tag("\(data)0300fe")
      #expect(try read(memory).message.isEmpty)
      #expect(throws: NDEFError.malformedTag(reason, offset: 16)) {
        try write(message(bytes: 79), to: memory, chip: .ntag213)
      }
    }
  }

  @Test("a message is written in parts: its length becomes 0, all else, its length")
  func parts() throws {
    let fresh = try write(message(bytes: 79), to: Type2Memory(factory(.ntag213)), chip: .ntag213)
    #expect(fresh.parts.map(\.count) == [21, 1] && Array(fresh.parts.joined()) == fresh.writes)
    let other = try write(message(bytes: 50, "b"), to: fresh.memory, chip: .ntag213)
    #expect(other.parts.first?.map(\.page) == [5] && other.parts.last?.map(\.page) == [5] && other.parts.count == 3)
    #expect(try write(message(bytes: 50, "b"), to: other.memory, chip: .ntag213).parts.isEmpty)
  }

  @Test("any message that fits survives on any chip, and the next longer one does not fit")
  func roundTrip() throws {
    var random = SplitMix(1)
    let sizes = [7, 8, 37, 45, 46, 47, 124, 125, 137, 138, 253, 254, 255, 256, 488, 489, 866, 867, 868]
    for layout in TagLayout.all {
      var memory = try layout.tag(nil).memory
      for size in sizes.shuffled(using: &random) {
        let message = message(bytes: size, "abcdef".randomElement(using: &random)!)
        if size <= layout.capacity {
          memory = try write(message, to: memory, chip: layout.chip).memory
          #expect(try NDEFMessage(parsing: read(memory).message) == message)
        } else {
          #expect(throws: NDEFError.tooSmall(needed: size, available: layout.capacity)) {
            try write(message, to: memory, chip: layout.chip)
          }
        }
      }
    }
  }

  @Test("writes every image that can be written", arguments: Type2LayoutTests.expected)
  func images(image: JSON.Member) throws {
    guard image.value["writable"] == true else { return }
    let memory = Type2Memory(Fixtures.tag(image.name))
    let chip: Type2Chip? =
      switch image.value["chip"]!.string! {
      case "ultralight": .ultralight
      case "ntag213" where memory[44] != nil: .ntag213
      case "ntag215": .ntag215
      case "ntag216": .ntag216
      default: nil
      }
    let plan = try write(message(bytes: 37), to: memory, chip: chip)
    #expect(!plan.writes.isEmpty)
    #expect(try read(plan.memory).message == message(bytes: 37).bytes)
  }

  @Test("the longest message that fits is told, where its length begins to take three bytes", arguments: 250...264)
  func border(room: Int) throws {
    // Of 264 bytes NULL blocks take the rest.
    var bytes = factory(.ntag215)
    bytes.replaceSubrange(12..<16, with: hex("e1102100"))
    let blocks = [UInt8](repeating: 0, count: 264 - room) + hex("0300fe")
    bytes.replaceSubrange(16..<16 + blocks.count, with: blocks)
    let memory = Type2Memory(bytes)
    let longest = (0...room).last { $0 + ($0 < 255 ? 2 : 4) <= room }!
    #expect(try read(memory).capacity == longest)
    func message(bytes count: Int) -> NDEFMessage {
      let type = [UInt8](repeating: 0x61, count: 100)
      return NDEFMessage([NDEFRecord(.media, type: type, payload: Array(repeating: 0, count: count - 103))])
    }
    let plan = try write(message(bytes: longest), to: memory, chip: .ntag215)
    #expect(try read(plan.memory).message == message(bytes: longest).bytes)
    #expect(throws: NDEFError.tooSmall(needed: longest + 1, available: longest)) {
      try write(message(bytes: longest + 1), to: memory, chip: .ntag215)
    }
  }

  /// An NTAG213 with a container and the beginning of the data area.
  func tag(_ data: String, container: String = "e1101200", locks: String = "0000", dynamic: String = "000000bd")
    -> Type2Memory
  {
    var bytes = factory(.ntag213)
    bytes.replaceSubrange(16..<24, with: repeatElement(0, count: 8))
    bytes.replaceSubrange(10..<16, with: hex(locks + container))
    bytes.replaceSubrange(16..<16 + hex(data).count, with: hex(data))
    bytes.replaceSubrange(160..<164, with: hex(dynamic))
    return Type2Memory(bytes)
  }

  @Test(
    "refuses in one line what cannot be written",
    arguments: [
      ("0300fe", "e110120f", "0000", "000000bd", NDEFError.readOnly),
      ("0300fe", "e1101208", "0000", "000000bd", .writeProtected(access: 8)),
      ("0300fe", "e1101280", "0000", "000000bd", .unreadable(access: 8)),
      ("0300fe", "e1201200", "0000", "000000bd", .unsupportedVersion(major: 2, minor: 0)),
      ("0300fe", "ff101200", "0000", "000000bd", .containerNotFixable(found: hex("ff101200"), wanted: hex("e1101200"))),
      ("0300fe", "e1101200", "1000", "000000bd", .locked(page: 4)),
      ("0300fe", "e1101200", "0080", "000000bd", .locked(page: 15)),
      ("0300fe", "e1101200", "0000", "040000bd", .locked(page: 20)),
      ("0300fe", "00000000", "0800", "000000bd", .locked(page: 3)),
      ("034f", "e1100600", "0000", "000000bd", .malformedTag("a block of 79 bytes, and 46 are left", offset: 16)),
      ("0300fe", "e1100700", "0000", "000000bd", .tooSmall(needed: 79, available: 54)),
      ("0300 fd020102 fe", "e1101200", "0000", "000000bd", .occupied(needed: 79, available: 0)),
    ])
  func refusals(data: String, container: String, locks: String, dynamic: String, error: NDEFError) {
    #expect(throws: error) {
      try write(
        message(bytes: 79), to: tag(data, container: container, locks: locks, dynamic: dynamic), chip: .ntag213)
    }
    #expect(!"\(error)".contains("\n") && "\(error)".first!.isLowercase)
  }

  @Test("keeps other blocks before and behind the message, unless all is replaced")
  func others() throws {
    let old = message(bytes: 37, "o").bytes
    let text = hexadecimal(old)
    let memory = tag("fd0201020325\(text)fd03aabbccfe")
    let short = try write(message(bytes: 20), to: memory, chip: .ntag213)
    #expect(try read(short.memory).message == message(bytes: 20).bytes)
    #expect(try read(short.memory).capacity == 144 - 4 - 2)
    // The other block stands where it stood, behind NULL blocks.
    #expect(short.memory[15] == memory[15] && short.memory[14]! == [0, 0, 0, 0xFD])
    #expect(throws: NDEFError.occupied(needed: 79, available: 37)) {
      try write(message(bytes: 79), to: memory, chip: .ntag213)
    }
    // A second message and a control block are blocks as well; what no tag is defined for is a torn message's rest.
    for (behind, isKept) in [("0303d00000fe", true), ("0103a00c34fe", true), ("0000fd00", true), ("d1011c5502", false)]
    {
      let memory = tag("0325\(text)\(behind)")
      if isKept {
        #expect(throws: NDEFError.occupied(needed: 79, available: behind.hasPrefix("00") ? 39 : 37)) {
          try write(message(bytes: 79), to: memory, chip: .ntag213)
        }
      } else {
        #expect(throws: Never.self) { try write(message(bytes: 79), to: memory, chip: .ntag213) }
      }
    }
    let all = try write(message(bytes: 140), to: memory, chip: .ntag213, replacingAll: true)
    #expect(try read(all.memory).message == message(bytes: 140).bytes)
    #expect(short.loss == Type2Loss() && all.loss == Type2Loss(blocks: 2))
  }

  @Test("replaces rubbish, but never control blocks, when told to")
  func rubbish() throws {
    let memory = tag("0103a00c34 04ff8000")
    #expect(throws: NDEFError.self) { try write(message(bytes: 79), to: memory, chip: .ntag213) }
    let plan = try write(message(bytes: 79), to: memory, chip: .ntag213, replacingAll: true)
    #expect(plan.memory[4] == hex("0103a00c"))
    #expect(plan.loss == Type2Loss(hasMalformedBlocks: true))
    #expect(try read(plan.memory).message == message(bytes: 79).bytes)
  }

  private static let chips: [Type2Chip] = [
    .ultralight, .ultralightEV1Small, .ultralightEV1Large, .ntag210, .ntag212, .ntag213, .ntag215, .ntag216,
  ]

  /// A chip without a container, and with these bytes at the beginning of the data area.
  private func unformatted(_ chip: Type2Chip, _ data: String = "", container: String = "00000000") -> Type2Memory {
    var bytes = factory(chip)
    bytes.replaceSubrange(12..<16, with: hex(container))
    bytes.replaceSubrange(16..<chip.userPages.upperBound * 4, with: repeatElement(0, count: chip.userPages.count * 4))
    bytes.replaceSubrange(16..<16 + hex(data).count, with: hex(data))
    return Type2Memory(bytes)
  }

  @Test("a chip without a container that holds data on any page is another system's", arguments: chips)
  func inUse(chip: Type2Chip) throws {
    let new = message(bytes: 37)
    for page in chip.userPages {
      // One-time bits that the container has too may be another system's as well.
      for container in page == 7 ? ["00000000", "e0000000", "00100000"] : ["00000000"] {
        var memory = unformatted(chip, container: container)
        memory[page]![page % 4] = 0xA5
        #expect(throws: NDEFError.inUse(pages: 1), "page \(page)") { try write(new, to: memory, chip: chip) }
        let all = try write(new, to: memory, chip: chip, replacingAll: true)
        #expect(try read(all.memory).message == new.bytes && all.loss == Type2Loss(pages: 1))
        // What was accepted once may be torn since.
        let torn = try Type2Plan.write(new, to: memory, chip: chip, isAccepted: true)
        #expect(torn == .done(all))
      }
    }
    var full = unformatted(chip)
    for page in chip.userPages { full[page] = hex("00005a00") }
    #expect(throws: NDEFError.inUse(pages: chip.userPages.count)) { try write(new, to: full, chip: chip) }
  }

  @Test(
    "a chip without a container that holds nothing, or an empty message, is formatted", arguments: chips,
    ["", "03", "0300fe", "0103a00c340300fe"])
  func blank(chip: Type2Chip, data: String) throws {
    let plan = try write(message(bytes: 37), to: unformatted(chip, data), chip: chip)
    #expect(plan.memory[3] == chip.container && plan.loss == Type2Loss())
    #expect(try read(plan.memory).message == message(bytes: 37).bytes)
  }

  @Test("a container is not made larger where others have data behind it")
  func sharedMemory() throws {
    var memory = tag("0300fe", container: "e1100200")
    memory[30] = hex("000000a5")
    #expect(throws: NDEFError.tooSmall(needed: 79, available: 14)) {
      try write(message(bytes: 79), to: memory, chip: .ntag213)
    }
    #expect(try write(message(bytes: 10), to: memory, chip: .ntag213).memory[3] == hex("e1100200"))
    let all = try write(message(bytes: 79), to: memory, chip: .ntag213, replacingAll: true)
    #expect(all.memory[3] == hex("e1101200") && all.loss == Type2Loss(pages: 1))
  }

  @Test("makes a container larger that was torn while it was written")
  func tornContainer() throws {
    let plan = try write(message(bytes: 79), to: tag("0300fe", container: "e1100200"), chip: .ntag213)
    #expect(plan.memory[3] == hex("e1101200"))
    #expect(try read(plan.memory).message == message(bytes: 79).bytes)
    // One that is large enough is left alone, as bits cannot be taken back.
    #expect(
      try write(message(bytes: 10), to: tag("0300fe", container: "e1100200"), chip: .ntag213).memory[3]
        == hex("e1100200"))
  }

  @Test("on an unknown chip believes the container, and refuses when a lock bit is set")
  func unknownChip() throws {
    let memory = Type2Memory(Fixtures.tag("guidoz_Empty_NTAG203"))
    let plan = try write(message(bytes: 79), to: memory, chip: nil)
    #expect(try read(plan.memory).message == message(bytes: 79).bytes)
    var locked = memory
    locked[40] = hex("10000000")
    #expect(throws: NDEFError.locked(page: 16)) { try write(message(bytes: 79), to: locked, chip: nil) }
    // Without a Lock Control block the lock bytes are behind the data area: twelve bits for 144 bytes.
    #expect(throws: Never.self) { try write(message(bytes: 79), to: tag("0300fe", dynamic: "00000100"), chip: nil) }
    for dynamic in ["01000000", "00010000"] {
      #expect(throws: NDEFError.locked(page: 16)) {
        try write(message(bytes: 79), to: tag("0300fe", dynamic: dynamic), chip: nil)
      }
    }
    for large in [memory, tag("0300fe", container: "e1100700")] {
      #expect(throws: NDEFError.unknownChip) { try lock(large, chip: nil) }
    }
    #expect(throws: Never.self) { try lock(tag("0300fe", container: "e1100600"), chip: nil) }
  }

  @Test(
    "locks with the bits of the data sheets",
    arguments: [
      (Type2Chip.ultralight, nil), (.ultralightEV1Small, nil), (.ultralightEV1Large, "ff0300bd"),
      (.ntag212, "ff0300bd"),
      (.ntag213, "ff0f00bd"), (.ntag215, "ff0000bd"), (.ntag216, "ff3f00bd"),
    ] as [(Type2Chip, String?)])
  func lockBits(chip: Type2Chip, dynamic: String?) throws {
    let plan = try lock(Type2Memory(factory(chip)), chip: chip)
    var expected = [Type2Plan.Write(page: 3, bytes: chip.container.dropLast() + [0x0F])]
    if let dynamic { expected.append(Type2Plan.Write(page: chip.userPages.upperBound, bytes: hex(dynamic))) }
    expected.append(Type2Plan.Write(page: 2, bytes: hex("a948f8ff")))
    expected.append(Type2Plan.Write(page: 2, bytes: hex("a948ffff")))
    #expect(plan.writes == expected)
  }

  @Test("refuses to lock what can never be locked")
  func frozen() throws {
    #expect(throws: NDEFError.lockFrozen(page: 4)) {
      try lock(Type2Memory(Fixtures.tag("guidoz_Go2_Flipper")), chip: .ntag216)
    }
    #expect(throws: NDEFError.lockFrozen(page: 16)) {
      try lock(Type2Memory(Fixtures.tag("guidoz_Google")), chip: .ntag216)
    }
    // The freezing bits for page 3, pages 4 to 9, and pages 10 to 15; the last page of each group alone is not locked.
    for (locks, page) in [("0100", 3), ("0200", 4), ("f201", 9), ("0400", 10), ("047c", 15)] {
      #expect(throws: NDEFError.lockFrozen(page: page)) { try lock(tag("0300fe", locks: locks), chip: .ntag213) }
    }
    #expect(throws: NDEFError.locked(page: 3)) { try lock(tag("0300fe", locks: "0800"), chip: .ntag213) }
    #expect(throws: NDEFError.notFormatted) { try lock(tag("", container: "00000000"), chip: .ntag213) }
    // Formatting does not mend them.
    for (locks, dynamic, page) in [("0200", "000000bd", 4), ("0000", "000001bd", 16)] {
      #expect(throws: NDEFError.lockFrozen(page: page)) {
        try lock(tag("", container: "00000000", locks: locks, dynamic: dynamic), chip: .ntag213)
      }
    }
  }
}
