import Encoding
package import Tags

/// Wraps another field, and traces the data to and from the tag, except secrets: see `FrameTrace`.
package final class TracedField: TagField {
  private let field: any TagField
  private let trace: (String) -> Void
  private var frames = FrameTrace()
  /// The last selected tag. Repeated looks at an empty field, or at the same tag, are not traced again.
  private var target: NFCTarget?

  package init(_ field: any TagField, _ trace: @escaping (String) -> Void) {
    self.field = field
    self.trace = trace
  }

  package func select() throws -> NFCTarget? {
    let found = try field.select()
    frames = FrameTrace()
    if found != target {
      trace(
        found.map {
          "< tag \($0.uid) ATQA \(hexadecimal($0.atqa)) SAK \(hexadecimal([$0.sak])) ATS \(hexadecimal($0.ats))"
        } ?? "< tag gone")
    }
    target = found
    return found
  }

  package func exchange(_ command: [UInt8], _ framing: NFCRequest.Framing) throws -> TagOutcome {
    trace("> tag \(frames.text(command: command, isISO: target?.speaksISODEP ?? false))")
    let outcome = try field.exchange(command, framing)
    switch outcome {
    case .answer(let answer): trace("< tag \(frames.text(answer: answer))")
    case .noAnswer: trace("< tag no answer")
    }
    return outcome
  }

  package func restart() throws { try field.restart() }

  package func rest() throws { try field.rest() }
}

/// Commands to a tag and its answers, in a form for people.
///
/// Only data that is known to be public is shown in full. For all other data, the first bytes show its kind, and `..`
/// and a number say how many bytes follow. That hides passwords, keys, the exchanges that use them, and a dynamic tag's
/// own digits, which prove a rider's presence once.
struct FrameTrace {
  /// How much of the next answer may be shown.
  private enum Shown {
    case all
    /// Up to the query of a URI.
    case content
    /// The last two bytes (ISO 7816-4, 5.1.3: SW1 and SW2).
    case status
    case nothing
  }

  private var shown = Shown.nothing
  /// Whether the next answer is the chip's version, and the chip, once it is known.
  private var asksVersion = false
  private var chip: Type2Chip?
  /// Whether the query of a URI has begun in the file that is being read.
  private var isInQuery = false
  /// Whether a tag's key is in use: from the beginning of an authentication to the next selection.
  private var isSecured = false

  /// - Parameter isISO: whether the tag speaks ISO 14443-4, and the command is an APDU.
  mutating func text(command: [UInt8], isISO: Bool) -> String {
    let count = isISO ? publicAPDU(command) : publicBytes(command)
    return Self.text(command, showing: min(count, command.count))
  }

  mutating func text(answer: [UInt8]) -> String {
    if asksVersion { chip = Type2Chip(version: answer) }
    asksVersion = false
    switch shown {
    case .all: return hexadecimal(answer)
    case .content:
      let data = answer.dropLast(2)
      let end = isInQuery ? 0 : data.firstIndex(of: UInt8(ascii: "?")).map { $0 + 1 } ?? data.count
      isInQuery = isInQuery || end < data.count || data.last == UInt8(ascii: "?")
      return Self.text(answer, showing: end, last: 2)
    case .status: return Self.text(answer, showing: 0, last: 2)
    case .nothing: return Self.text(answer, showing: 0)
    }
  }

  /// How many bytes of a command to a Type 2 tag are public (NTAG213/215/216, rev. 3.2, 10).
  private mutating func publicBytes(_ command: [UInt8]) -> Int {
    asksVersion = command == [0x60]
    switch command.first {
    // GET_VERSION, READ, FAST_READ: a password is read as zeros.
    case 0x60, 0x30, 0x3A:
      shown = .all
      return command.count
    // WRITE: anybody can read the data again. On an unknown chip, a page may contain a key.
    case 0xA2 where command.count == 6:
      shown = .all
      let page = Int(command[1])
      return page <= 3 || chip?.userPages.contains(page) == true || chip?.dynamicLocks?.page == page ? 6 : 2
    default:
      shown = .nothing
      return 1
    }
  }

  /// How many bytes of an APDU are public.
  private mutating func publicAPDU(_ command: [UInt8]) -> Int {
    guard command.count >= 4 else {
      shown = .nothing
      return 0
    }
    switch (command[0], command[1]) {
    // SELECT (ISO 7816-4, 11.1.1) ends everything before it.
    case (0x00, 0xA4):
      (shown, isInQuery, isSecured) = (.all, false, false)
      return command.count
    case (0x00, 0xB0) where !isSecured:
      shown = .content
      return command.count
    // UPDATE BINARY: a message that anybody can read again; for a dynamic tag, its template.
    case (0x00, 0xD6) where !isSecured:
      shown = .all
      return command.count
    // GetVersion, its next part (with data, the same code belongs to an authentication), GetKeyVersion, GetFileSettings
    // (NT4H2421Gx 10).
    case (0x90, 0x60) where !isSecured, (0x90, 0xAF) where !isSecured && command.count == 5,
      (0x90, 0x64) where !isSecured, (0x90, 0xF5) where !isSecured:
      shown = .all
      return command.count
    default:
      if command[0] == 0x90 { isSecured = true }
      shown = .status
      return 4
    }
  }

  /// Bytes as hexadecimal digits, with the number of omitted bytes.
  ///
  /// - Parameters:
  ///   - first: how many bytes are shown at the beginning.
  ///   - last: how many at the end.
  private static func text(_ bytes: [UInt8], showing first: Int, last: Int = 0) -> String {
    let end = bytes.suffix(min(last, bytes.count))
    let hidden = bytes.count - first - end.count
    guard hidden > 0 else { return hexadecimal(bytes) }
    let parts = [hexadecimal(bytes.prefix(first)), "..\(hidden)..", hexadecimal(end)]
    return parts.filter { !$0.isEmpty }.joined(separator: " ")
  }
}
