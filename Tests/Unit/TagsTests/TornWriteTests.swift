import NDEF
import TestSupport
import Testing

@testable import Tags

@Suite("Torn writes") struct TornWriteTests {
  enum Held: Equatable {
    case message([UInt8])
    case refused
  }

  /// What a reader makes of a memory.
  func held(_ memory: Type2Memory) throws -> Held {
    do {
      let bytes = try read(memory).message
      if !bytes.isEmpty { _ = try NDEFMessage(parsing: bytes) }
      return .message(bytes)
    } catch is NDEFError {
      return .refused
    }
  }

  /// Lengths of the old message (nil: none) and of the new one.
  static let sizes: [(old: Int?, new: Int)] = [
    (nil, 7), (nil, 79), (37, 37), (37, 79), (79, 10), (79, 118), (118, 37), (nil, 300), (253, 254), (254, 255),
    (255, 254), (256, 480), (480, 79), (79, 256),
  ]

  @Test("a torn tag is empty, or holds the old message or the new one", arguments: TagLayout.all)
  func torn(layout: TagLayout) throws {
    var random = SplitMix(1)
    var plans = 0
    for (oldSize, newSize) in Self.sizes {
      let old = oldSize.map { message(bytes: $0, "o") }
      let new = message(bytes: newSize, "n")
      var tag = try layout.tag(old)
      let capacity = layout.capacity
      guard max(oldSize ?? 0, newSize) <= capacity else {
        if oldSize == nil {
          #expect(throws: NDEFError.tooSmall(needed: newSize, available: capacity)) {
            try write(new, to: tag.memory, chip: layout.chip)
          }
        }
        continue
      }
      plans += 1
      let allowed = [Held.message(old?.bytes ?? []), .message([]), .message(new.bytes)]
      let plan = try write(new, to: tag.memory, chip: layout.chip)
      // The page that has the length: rubbish in it is refused, and so is rubbish in what controls the reserved bytes.
      let header = plan.writes.last!.page
      for write in plan.writes {
        for memory in try tag.torn(write) {
          let found = try held(memory)
          #expect(allowed.contains(found), "\(oldSize ?? 0) to \(newSize): page \(write.page)")
        }
        let erasedFrom = write.page == layout.start / 4 ? layout.start % 4 : 0
        for memory in try tag.torn(write, erasedFrom: erasedFrom).shuffled(using: &random).prefix(
          write.page == header ? 256 : 8)
        {
          let found = try held(memory)
          #expect(
            allowed.contains(found) || write.page == header && found == .refused,
            "\(oldSize ?? 0) to \(newSize): page \(write.page)")
        }
        try tag.take(write)
        #expect(allowed.contains(try held(tag.memory)))
      }
      #expect(try held(tag.memory) == .message(new.bytes))
      #expect(tag.memory == plan.memory)
      #expect(try TagsTests.write(new, to: tag.memory, chip: layout.chip).writes == [])
    }
    #expect(plans >= 2)
  }

  @Test("what a torn write left is written to the end by a new plan", arguments: TagLayout.all)
  func repeated(layout: TagLayout) throws {
    var random = SplitMix(1)
    for (oldSize, newSize) in [(nil, 37), (37, 37), (37, 10), (10, 37), (79, 118), (480, 79), (254, 255), (255, 254)] {
      let new = message(bytes: newSize, "n")
      var tag = try layout.tag(oldSize.map { message(bytes: $0, "o") })
      guard max(oldSize ?? 0, newSize) <= layout.capacity else { continue }
      let before = tag.memory
      for write in try write(new, to: tag.memory, chip: layout.chip).writes {
        for memory in try tag.torn(write).shuffled(using: &random).prefix(4) {
          let plan = try TagsTests.write(new, to: memory, chip: layout.chip)
          #expect(try held(plan.memory) == .message(new.bytes))
        }
        try tag.take(write)
      }
      // What was before the message and what is reserved is as it was.
      for address in Array(16..<16 + layout.before.count) + Array(layout.hole ?? 0..<0) {
        #expect(tag.memory[address / 4]![address % 4] == before[address / 4]![address % 4])
      }
      for page in layout.chip.userPages.upperBound..<layout.chip.pages { #expect(tag.memory[page] == before[page]) }
    }
  }

  @Test("a text is never read wrongly, whatever two bytes of the length's page are")
  func anyBytes() throws {
    let layout = TagLayout.all[1]
    let old = message(bytes: 37, "o")
    let new = message(bytes: 79, "n")
    let allowed: [NDEFText?] = [nil] + (try [old, new].map { try NDEFText($0.records[0]) })
    var tag = try layout.tag(old)
    let plan = try write(new, to: tag.memory, chip: layout.chip)
    let header = plan.writes.last!.page
    var tried = 0
    for write in plan.writes {
      if write.page == header {
        for (first, second) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
          for value in 0...UInt16.max {
            // Every value of one byte with some of the other's.
            guard (value & 0xFF) % 16 == 1 || value >> 8 == 0x03 || value >> 8 == 0xFF else { continue }
            var bytes = write.bytes
            bytes[first] = UInt8(value >> 8)
            bytes[second] = UInt8(value & 0xFF)
            var memory = tag.memory
            memory[header] = bytes
            tried += 1
            guard case .message(let found) = try held(memory), !found.isEmpty else { continue }
            let text = try? NDEFText(NDEFMessage(parsing: found).records[0])
            #expect(allowed.contains(text), "\(bytes)")
          }
        }
      }
      try tag.take(write)
    }
    #expect(tried > 10_000)
  }

  @Test("formatting a blank tag can be torn", arguments: [Type2Chip.ultralight, .ntag213, .ntag215, .ntag216])
  func formatting(chip: Type2Chip) throws {
    var random = SplitMix(1)
    // Blank, and with rubbish where blocks will be.
    for rubbish in [0x00, 0x03, 0x5A] as [UInt8] {
      var bytes = factory(chip)
      for index in 12..<16 { bytes[index] = 0 }
      for index in 16..<chip.userPages.upperBound * 4 { bytes[index] = rubbish }
      var tag = SimulatedTag(chip, bytes)
      #expect(throws: NDEFError.notFormatted) { try read(tag.memory) }
      #expect(throws: NDEFError.unknownChip) { try write(message(bytes: 37), to: tag.memory, chip: nil) }
      let new = message(bytes: 37)
      for write in try write(new, to: tag.memory, chip: chip, replacingAll: rubbish != 0).writes {
        for memory in try tag.torn(write, erasedFrom: 0).shuffled(using: &random).prefix(16) {
          let found = try held(memory)
          #expect([.message([]), .message(new.bytes), .refused].contains(found))
          // Whatever is left, unless the page of the length is rubbish, can be written again.
          let again = try? TagsTests.write(new, to: memory, chip: chip, replacingAll: true)
          #expect(try again.map { try held($0.memory) } == .message(new.bytes))
        }
        try tag.take(write)
      }
      #expect(tag.memory[3] == chip.container)
      #expect(try held(tag.memory) == .message(new.bytes))
    }
  }

  @Test("what nobody could read on a blank tag is read at no moment of formatting it", arguments: 0..<4)
  func hidden(offset: Int) throws {
    // A message that would be found once the container says that this is a tag, were it not in the way.
    let hidden = [UInt8](repeating: 0, count: offset) + hex("030a") + message(bytes: 10, "o").bytes + hex("fe")
    var bytes = factory(.ntag213)
    bytes.replaceSubrange(12..<16, with: hex("00000000"))
    bytes.replaceSubrange(16..<16 + hidden.count, with: hidden)
    var tag = SimulatedTag(.ntag213, bytes)
    let new = message(bytes: 37)
    for write in try write(new, to: tag.memory, chip: .ntag213, replacingAll: true).writes {
      for memory in try tag.torn(write) {
        #expect([.message([]), .message(new.bytes), .refused].contains(try held(memory)), "page \(write.page)")
      }
      try tag.take(write)
    }
    #expect(try held(tag.memory) == .message(new.bytes))
  }

  @Test("what another block holds is read at no moment of replacing it", arguments: [1, 13, 20])
  func replaced(count: Int) throws {
    // Were its length 0 first, what it holds would be blocks.
    let hidden = hex("030a") + message(bytes: 10, "o").bytes + hex("fe") + [UInt8](repeating: 0, count: 7)
    var bytes = factory(.ntag213)
    bytes.replaceSubrange(16..<18 + count, with: [0xFD, UInt8(count)] + hidden.prefix(count))
    bytes.replaceSubrange(18 + count..<21 + count, with: hex("0300fe"))
    var tag = SimulatedTag(.ntag213, bytes)
    let new = message(bytes: 37)
    for write in try write(new, to: tag.memory, chip: .ntag213, replacingAll: true).writes {
      for memory in try tag.torn(write) {
        #expect([.message([]), .message(new.bytes), .refused].contains(try held(memory)), "page \(write.page)")
      }
      try tag.take(write)
    }
    #expect(try held(tag.memory) == .message(new.bytes))
  }

  @Test("a tag that is locked keeps its message at each moment, and can be locked to the end", arguments: TagLayout.all)
  func locking(layout: TagLayout) throws {
    var random = SplitMix(1)
    let message = message(bytes: 37)
    var tag = try layout.tag(message)
    let plan = try lock(tag.memory, chip: layout.chip)
    for write in plan.writes {
      for memory in try tag.torn(write).shuffled(using: &random).prefix(50) {
        #expect(try held(memory) == .message(message.bytes))
        guard write != plan.writes.last else { continue }
        let again = try lock(memory, chip: layout.chip)
        #expect(again.memory == plan.memory)
      }
      try tag.take(write)
      #expect(try held(tag.memory) == .message(message.bytes))
    }
    #expect(tag.memory == plan.memory)
    #expect(try lock(tag.memory, chip: layout.chip).writes == [])
    #expect(throws: NDEFError.readOnly) { try write(message, to: tag.memory, chip: layout.chip) }
    #expect(try !read(tag.memory).isWritable)
    for page in 3..<layout.chip.userPages.upperBound {
      #expect(throws: SimulatedTag.Refusal(page: page)) {
        try tag.take(Type2Plan.Write(page: page, bytes: [0, 0, 0, 0]))
      }
    }
  }
}
