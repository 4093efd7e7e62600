import Domain
package import NFC
package import Tags

/// A tag that a `PlayedField` has before it.
package protocol PlayedTag: AnyObject {
  var target: NFCTarget { get }
  /// The tag was selected.
  func reset()
  /// Nil where it refuses.
  func answer(_ command: [UInt8], _ framing: NFCRequest.Framing) -> [UInt8]?
  /// The tag leaves while it carries out a command.
  func tear(_ command: [UInt8], using random: inout SplitMix)
}

/// A reader's field in memory, with a tag that leaves, lies and comes back as it is told.
package final class PlayedField: TagField {
  /// What goes wrong with a command.
  package enum Fault: CaseIterable {
    /// The tag carries it out, but its answer is lost.
    case lostAnswer
    /// The tag does not get it.
    case lostCommand
    /// The tag leaves before it, and comes back.
    case leaves
    /// The tag leaves in the middle of it, and comes back.
    case torn
  }

  package var tag: any PlayedTag
  /// By the number of the command, from 0 on.
  package var faults: [Int: Fault] = [:]
  /// How many looks at the field a tag misses that has left.
  package var absence = 2
  /// What comes back in place of a tag that has left.
  package var successor: (any PlayedTag)?
  /// Called when the tag has left: what it then holds is what everybody would read.
  package var hasLeft: () -> Void = {}
  package private(set) var commands: [[UInt8]] = []
  package private(set) var rests = 0
  package private(set) var restarts = 0
  package var interruptsRest: Int?

  private var missing = 0
  private var isSelected = false
  private var random: SplitMix

  package init(_ tag: any PlayedTag, seed: UInt64 = 1) {
    self.tag = tag
    random = SplitMix(seed)
  }

  /// There is no tag until it was looked for that often.
  package func remove(for looks: Int) { (missing, isSelected) = (looks, false) }

  package func select() -> NFCTarget? {
    if missing > 0 {
      missing -= 1
      return nil
    }
    if let next = successor, wasAway {
      tag = next
      successor = nil
    }
    wasAway = false
    isSelected = true
    tag.reset()
    return tag.target
  }

  private var wasAway = false

  package func exchange(_ command: [UInt8], _ framing: NFCRequest.Framing) -> TagOutcome {
    let fault = faults[commands.count]
    commands.append(command)
    guard isSelected else { return .noAnswer }
    switch fault {
    case nil:
      if let answer = tag.answer(command, framing) { return .answer(answer) }
    case .lostAnswer:
      _ = tag.answer(command, framing)
    case .lostCommand:
      break
    case .leaves, .torn:
      if fault == .torn { tag.tear(command, using: &random) }
      (missing, wasAway) = (absence, true)
      hasLeft()
    }
    // After an error a tag has to be selected again.
    isSelected = false
    return .noAnswer
  }

  package func restart() {
    restarts += 1
    isSelected = false
  }

  package func rest() throws {
    rests += 1
    if rests == interruptsRest { throw NFCError.interrupted }
  }
}

/// A Type 2 tag, whose memory is a `SimulatedTag`.
package final class PlayedType2: PlayedTag {
  package private(set) var tag: SimulatedTag
  package let target: NFCTarget
  /// Pages that acknowledge what is written to them, and stay as they are.
  package var deafPages: Set<Int> = []
  /// Pages that refuse to be written, though no lock bit says so.
  package var refusedPages: Set<Int> = []
  /// Pages from there on refuse to be read, though nothing says so. READ goes on with page 0 where they begin.
  package var hiddenFrom = Int.max
  /// Whether it takes FAST_READ, if it says its version.
  package var hasFastRead = true
  /// Called when a write was acknowledged.
  package var hasTaken: () -> Void = {}
  /// AUTH0, and whether reading needs the password as well.
  private var password = (first: Int.max, isForReading: false)

  /// A password protects the pages from there on.
  package func protect(from first: Int, reading: Bool) {
    password = (first, reading)
    var bytes = memory[tag.chip.configuration!]!
    bytes[3] = UInt8(first)
    var memory = memory
    memory[tag.chip.configuration!] = bytes
    tag = tag.holding(memory)
  }

  private func isReadable(_ page: Int) -> Bool {
    page < min(tag.chip.pages, hiddenFrom) && !(password.isForReading && page >= password.first)
  }

  package init(_ chip: Type2Chip, _ bytes: [UInt8]? = nil, uid: UInt8 = 0x51, hasShortUID: Bool = false) {
    var bytes = bytes ?? SimulatedTag.factory(chip)
    bytes[1] = uid
    tag = SimulatedTag(chip, bytes)
    let uid = hasShortUID ? bytes[0..<4] : bytes[0..<3] + bytes[4..<8]
    target = NFCTarget(atqa: [0x00, 0x44], sak: 0x00, uid: Array(uid), ats: [])!
  }

  package var memory: Type2Memory { tag.memory }

  /// The bytes of its message; nil where there is none that can be read.
  package var message: [UInt8]? {
    guard case .done(let layout) = try? Type2Layout.read(memory) else { return nil }
    return layout.message
  }

  package func reset() {}

  package func answer(_ command: [UInt8], _ framing: NFCRequest.Framing) -> [UInt8]? {
    switch (command[0], framing) {
    case (0x60, .raw):
      let sizes: [Type2Chip: UInt8] = [.ntag213: 0x0F, .ntag215: 0x11, .ntag216: 0x13]
      return sizes[tag.chip].map { [0x00, 0x04, 0x04, 0x02, 0x01, 0x00, $0, 0x03] }
    case (0x3A, .raw) where hasFastRead && isReadable(Int(command[2])):
      return (command[1]...command[2]).flatMap { memory[Int($0)]! }
    case (0x30, .easy) where isReadable(Int(command[1])):
      // It goes on with page 0 behind the last one.
      let end = min(tag.chip.pages, hiddenFrom, password.isForReading ? password.first : .max)
      return (0..<4).flatMap { memory[(Int(command[1]) + $0) % end]! }
    case (0xA2, .easy):
      let write = Type2Plan.Write(page: Int(command[1]), bytes: Array(command[2...]))
      defer { hasTaken() }
      if refusedPages.contains(write.page) || write.page >= password.first { return nil }
      if deafPages.contains(write.page) { return [] }
      return (try? tag.take(write)).map { [] }
    default:
      return nil
    }
  }

  package func tear(_ command: [UInt8], using random: inout SplitMix) {
    guard command[0] == 0xA2 else { return }
    let write = Type2Plan.Write(page: Int(command[1]), bytes: Array(command[2...]))
    guard let memory = try? tag.torn(write).randomElement(using: &random) else { return }
    tag = tag.holding(memory)
  }
}

/// A Type 4 tag with an NDEF file (NFC Forum, Type 4 Tag Operation 2.0).
package final class PlayedType4: PlayedTag {
  package let target: NFCTarget
  package private(set) var file: [UInt8]
  private var selected: UInt16?
  /// Whether it acknowledges what is written behind its length, and stays as it is.
  package var ignoresWrites = false
  /// Where in its message it shows how often it was activated, as eight digits; nil for nowhere.
  package var counterAt: Int?
  private var activations = 0

  package init(size: Int = 512, uid: UInt8 = 1) {
    file = [UInt8](repeating: 0, count: size)
    target = NFCTarget(
      atqa: [0x03, 0x44], sak: 0x20, uid: [0x04, uid, 2, 3, 4, 5, 6], ats: [0x77, 0x77, 0x71, 0x02, 0x80])!
  }

  package var message: [UInt8] { Array(file[2..<2 + (Int(file[0]) << 8 | Int(file[1]))]) }

  package func hold(_ message: [UInt8]) {
    file.replaceSubrange(
      0..<2 + message.count, with: [UInt8(message.count >> 8), UInt8(message.count & 0xFF)] + message)
  }

  private var container: [UInt8] {
    [0x00, 0x0F, 0x20, 0x00, 0x3B, 0x00, 0x34, 0x04, 0x06, 0xE1, 0x04, UInt8(file.count >> 8)]
      + [UInt8(file.count & 0xFF), 0x00, 0x00]
  }

  package func reset() {
    selected = nil
    activations += 1
  }

  /// The file with the counter in it.
  private var shown: [UInt8] {
    guard let counterAt else { return file }
    var shown = file
    let digits = Array(String(activations).utf8)
    shown.replaceSubrange(
      2 + counterAt..<10 + counterAt, with: Array(repeating: 0x30, count: 8 - digits.count) + digits)
    return shown
  }

  package func answer(_ command: [UInt8], _ framing: NFCRequest.Framing) -> [UInt8]? {
    let done: [UInt8] = [0x90, 0x00]
    let offset = Int(command[2]) << 8 | Int(command[3])
    switch command[1] {
    case 0xA4 where command[2] == 0x04:
      return done
    case 0xA4:
      selected = UInt16(command[5]) << 8 | UInt16(command[6])
      return done
    case 0xB0:
      let content = selected == 0xE103 ? container : shown
      return Array(content.dropFirst(offset).prefix(Int(command[4]))) + done
    case 0xD6 where selected == 0xE104:
      if !ignoresWrites || offset == 0 {
        file.replaceSubrange(offset..<offset + command.count - 5, with: command[5...])
      }
      return done
    default:
      return [0x6D, 0x00]
    }
  }

  /// A part of the data is written; a length is written wholly or not at all.
  package func tear(_ command: [UInt8], using random: inout SplitMix) {
    guard command[1] == 0xD6, selected == 0xE104 else { return }
    let offset = Int(command[2]) << 8 | Int(command[3])
    let data = command[5...]
    let count = offset == 0 ? [0, 2].randomElement(using: &random)! : Int.random(in: 0...data.count, using: &random)
    file.replaceSubrange(offset..<offset + count, with: data.prefix(count))
  }
}
