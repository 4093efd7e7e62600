import Domain

/// What `stepctl-nfc` answers.
package enum NFCReply: Equatable, Sendable {
  /// The connection string of a reader.
  case found(connection: String)
  /// The reader is open.
  case opened
  /// A tag is selected.
  case selected(NFCTarget)
  /// There is no reader, or no tag.
  case nothing
  /// What the tag answered.
  case received([UInt8])
  /// The error code that libnfc gave (nfc.h), which is negative.
  case failed(code: Int8)

  /// NFC_ERFTRANS: the tag refused the command, or is not there any more. The reader itself is well.
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
