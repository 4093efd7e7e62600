package import Domain
package import Encoding

/// A tag's answers to being selected (ISO 14443-3, 6.5).
package struct NFCTarget: Hashable, Sendable {
  /// The answer to the request, in the chip's byte order: two bytes.
  package let atqa: [UInt8]
  /// The answer to the selection.
  package let sak: UInt8
  package let uid: TagUID
  /// The answer of an ISO 14443-4 tag to its activation, without the length byte; empty for other tags.
  package let ats: [UInt8]

  /// Nil for values that no tag can send.
  package init?(atqa: [UInt8], sak: UInt8, uid: [UInt8], ats: [UInt8]) {
    guard atqa.count == 2, let uid = TagUID(uid), ats.count <= 254 else { return nil }
    self.atqa = atqa
    self.sak = sak
    self.uid = uid
    self.ats = ats
  }

  /// Whether it speaks ISO 14443-4, as Type 4 tags do (ISO 14443-3, 6.5.3.4: bit 6 of SAK).
  package var speaksISODEP: Bool { sak & 0x20 != 0 }
}

/// A request from stepctl to `stepctl-nfc`, each a message of `Frames`. Each request gets one `NFCReply` before the
/// next is sent. At the end of its input, stepctl-nfc switches off the field and exits.
package enum NFCRequest: Equatable, Sendable {
  /// Asks which reader libnfc picks by default. Answered with `found` or `nothing`.
  case find
  /// Opens a reader by its connection string, and switches on the field. Answered with `opened` or `failed`.
  case open(connection: String)
  /// Looks for one tag, ISO 14443 A at 106 kbit/s. Answered with `selected`, `nothing` or `failed`.
  case select
  /// Sends a command to the tag selected last. Answered with `received` or `failed`.
  case exchange(command: [UInt8], Framing)
  /// Switches the field off, and on again: a tag loses its power. Answered with `opened` or `failed`.
  case restart

  /// How a command is sent to the tag.
  package enum Framing: UInt8, Sendable {
    /// The chip handles the tag's protocol (PN532 User Manual 7.3.8, InDataExchange): ISO 14443-4 blocks, and the short
    /// acknowledgements of Type 2 tags.
    case easy
    /// The bytes unchanged, with a CRC (7.3.9, InCommunicateThru).
    case raw
  }

  /// The longest command, bytes: the most that libnfc can send without overrunning its buffer, rounded down.
  package static let longestCommand = 256
  /// The longest request, bytes: a connection string, which libnfc limits to 1024 bytes with its NUL.
  package static let longest = 1024

  private enum Kind: UInt8 {
    case find = 0x01
    case open, select, exchange, restart
  }

  package var body: [UInt8] {
    switch self {
    case .find: [Kind.find.rawValue]
    case .open(let connection): [Kind.open.rawValue] + connection.utf8
    case .select: [Kind.select.rawValue]
    case .exchange(let command, let framing): [Kind.exchange.rawValue, framing.rawValue] + command
    case .restart: [Kind.restart.rawValue]
    }
  }

  package init(body: [UInt8]) throws(MalformedMessage) {
    let content = body.dropFirst()
    switch body.first.flatMap(Kind.init) {
    case .find where content.isEmpty: self = .find
    case .open:
      guard let connection = String(validating: content, as: UTF8.self), !connection.utf8.contains(0) else {
        throw MalformedMessage()
      }
      self = .open(connection: connection)
    case .select where content.isEmpty: self = .select
    case .exchange:
      guard let framing = content.first.flatMap(Framing.init),
        (1...Self.longestCommand).contains(content.count - 1)
      else { throw MalformedMessage() }
      self = .exchange(command: Array(content.dropFirst()), framing)
    case .restart where content.isEmpty: self = .restart
    default: throw MalformedMessage()
    }
  }
}

/// A reply of `stepctl-nfc`.
package enum NFCReply: Equatable, Sendable {
  /// The longest reply, bytes: a connection string, which libnfc limits to 1024 bytes with its NUL.
  package static let longest = 1024

  /// The connection string of a reader.
  case found(connection: String)
  /// The reader is open, and its field is on.
  case opened
  /// A tag is selected.
  case selected(NFCTarget)
  /// There is no reader, or no tag.
  case nothing
  /// The tag's answer.
  case received([UInt8])
  /// The error code of libnfc (nfc.h), which is negative.
  case failed(code: Int8)

  /// NFC_ERFTRANS: the tag refused the command, or is gone. The reader itself works.
  package static let transmissionFailed: Int8 = -20
  /// NFC_ENOTSUCHDEV: the reader cannot be opened.
  package static let noSuchDevice: Int8 = -4

  private enum Kind: UInt8 {
    case found = 0x81
    case opened, selected, nothing, received, failed
  }

  package var body: [UInt8] {
    switch self {
    case .found(let connection): [Kind.found.rawValue] + connection.utf8
    case .opened: [Kind.opened.rawValue]
    case .selected(let target):
      [Kind.selected.rawValue, target.sak, UInt8(target.uid.bytes.count)] + target.atqa + target.uid.bytes
        + target.ats
    case .nothing: [Kind.nothing.rawValue]
    case .received(let bytes): [Kind.received.rawValue] + bytes
    case .failed(let code): [Kind.failed.rawValue, UInt8(bitPattern: code)]
    }
  }

  package init(body: [UInt8]) throws(MalformedMessage) {
    let content = body.dropFirst()
    switch body.first.flatMap(Kind.init) {
    case .found:
      guard let connection = String(validating: content, as: UTF8.self), !connection.isEmpty,
        !connection.utf8.contains(0)
      else { throw MalformedMessage() }
      self = .found(connection: connection)
    case .opened where content.isEmpty: self = .opened
    case .selected:
      guard content.count >= 4 else { throw MalformedMessage() }
      let rest = content.dropFirst(4)
      let uidSize = Int(content[2])
      guard rest.count >= uidSize,
        let target = NFCTarget(
          atqa: Array(content[3...4]), sak: content[1], uid: Array(rest.prefix(uidSize)),
          ats: Array(rest.dropFirst(uidSize)))
      else { throw MalformedMessage() }
      self = .selected(target)
    case .nothing where content.isEmpty: self = .nothing
    case .received: self = .received(Array(content))
    case .failed:
      guard content.count == 1, let byte = content.first, byte >= 0x80 else { throw MalformedMessage() }
      self = .failed(code: Int8(bitPattern: byte))
    default: throw MalformedMessage()
    }
  }
}
