/// What stepctl asks of `stepctl-nfc`. Each request gets one `NFCReply`, and the next is sent after that.
package enum NFCRequest: Equatable, Sendable {
  /// Which reader libnfc takes where none is named. Answered with `found` or `nothing`.
  case find
  /// Open a reader by its connection string, and switch on the field. Answered with `opened` or `failed`.
  case open(connection: String)
  /// Look for one tag, ISO 14443 A at 106 kbit/s. Answered with `selected`, `nothing` or `failed`.
  case select
  /// Send a command to the tag that was selected last. Answered with `received` or `failed`.
  case exchange(command: [UInt8], Framing)
  /// Switch off the field, and end. Not answered.
  case close

  /// How a command goes to the tag.
  package enum Framing: UInt8, Sendable {
    /// The chip speaks the tag's protocol (PN532 User Manual 7.3.8, InDataExchange): ISO 14443-4 blocks, and the short
    /// acknowledgements of Type 2 tags.
    case easy
    /// The bytes as they are, with a CRC (7.3.9, InCommunicateThru).
    case raw
  }

  /// The longest command: what libnfc can send without writing beyond its buffer, rounded down.
  package static let longestCommand = 256

  private enum Kind: UInt8 {
    case find = 0x01
    case open, select, exchange, close
  }

  package var body: [UInt8] {
    switch self {
    case .find: [Kind.find.rawValue]
    case .open(let connection): [Kind.open.rawValue] + connection.utf8
    case .select: [Kind.select.rawValue]
    case .exchange(let command, let framing): [Kind.exchange.rawValue, framing.rawValue] + command
    case .close: [Kind.close.rawValue]
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
    case .close where content.isEmpty: self = .close
    default: throw MalformedMessage()
    }
  }
}
