package import Domain
import Encoding

/// Reads HCI events from a btsnoop file, piece by piece.
///
/// The format is that of RFC 1761 with its own data link types: H4 (1002: Android, and Wireshark), the Linux monitor
/// (2001: `btmon -w`) and bare HCI (1001). The last two have the packet type in the flags.
package struct BTSnoopDecoder: Sendable {
  /// Why decoding cannot continue.
  package enum Defect: Error, Equatable {
    /// The file has another format, or contains packets of another kind.
    case notACapture(reason: String)
    /// At this byte of the file, something else was expected.
    case damaged(offset: UInt64, expected: String)
  }

  private enum DataLink: UInt32 {
    case hci = 1001
    case h4 = 1002
    case linuxMonitor = 2001
  }

  private static let fileHeader = 16
  private static let recordHeader = 24
  /// The longest HCI packet: ACL data of 65,535 bytes, its header of 4, and the packet type.
  package static let maximumPacket = 65_540
  /// The first bytes of a file.
  static let magic = Array("btsnoop\0".utf8)
  /// 1970-01-01 in btsnoop's time: microseconds since the year 0.
  static let epoch: Int64 = 0x00DC_DDB3_0F2F_8000
  /// The accepted times, microseconds: the years 0 to 9999. Their differences cannot overflow an `Int64`.
  private static let times = 0..<epoch + 253_402_300_800_000_000

  /// The next record or the file header, and the bytes after it.
  private var buffer = StreamBuffer()
  /// Known when the file header has been read.
  private var dataLink: DataLink?

  package init() {}

  /// Adds bytes of the file.
  package mutating func append(_ new: UnsafeRawBufferPointer) { buffer.append(new) }

  /// Passes on the next record: its time, and the event packet from its event code on. The packet is empty for commands
  /// and data. It may be cut short, because captures can limit the bytes of each packet.
  ///
  /// - Returns: what `body` returned, or nil if the record is not complete yet.
  package mutating func next<Result>(
    _ body: (_ time: UnixTime, _ event: Span<UInt8>) -> Result
  ) throws(Defect) -> Result? {
    if dataLink == nil {
      guard let link = try readFileHeader() else { return nil }
      dataLink = link
    }
    guard buffer.count >= Self.recordHeader else { return nil }
    let originalLength = word(0)
    let includedLength = word(4)
    let flags = word(8)
    guard includedLength <= originalLength else {
      throw .damaged(offset: offset + 4, expected: "an included length of at most the original \(originalLength)")
    }
    guard includedLength <= Self.maximumPacket else {
      throw .damaged(offset: offset + 4, expected: "a packet of at most \(Self.maximumPacket) bytes")
    }
    let time = Int64(bitPattern: UInt64(word(16)) << 32 | UInt64(word(20)))
    guard Self.times.contains(time) else {
      throw .damaged(offset: offset + 16, expected: "a time in the years 0 to 9999")
    }
    guard buffer.count >= Self.recordHeader + Int(includedLength) else { return nil }
    _ = buffer.take(Self.recordHeader)
    let packet = buffer.take(Int(includedLength))

    let nothing = packet.upperBound..<packet.upperBound
    let event: Range<Int>
    switch dataLink {
    case .h4: event = !packet.isEmpty && buffer.bytes[packet.lowerBound] == 0x04 ? packet.dropFirst() : nothing
    // From the controller (bit 0), and a command or an event (bit 1).
    case .hci: event = flags & 3 == 3 ? packet : nothing
    // The low half is the monitor's opcode, where 3 is an event; the high half is the adapter's number.
    case .linuxMonitor: event = flags & 0xFFFF == 3 ? packet : nothing
    case nil: event = nothing
    }
    return body(UnixTime(microseconds: time - Self.epoch), buffer.bytes.span.extracting(event))
  }

  /// Must be called at the end of the bytes: throws if the file ends in the middle of something.
  package func finish() throws(Defect) {
    let left = buffer.count
    if dataLink == nil {
      if !Self.magic.starts(with: buffer.bytes.prefix(Self.magic.count)),
        let reason = ForeignCapture(buffer.bytes, isAll: true).description
      {
        throw .notACapture(reason: reason)
      }
      throw left == 0
        ? .notACapture(reason: "it is empty")
        : .damaged(offset: buffer.end, expected: "the rest of a 16-byte file header")
    }
    guard left == 0 else {
      let missing = left < Self.recordHeader ? Self.recordHeader - left : Self.recordHeader + Int(word(4)) - left
      throw .damaged(
        offset: buffer.end, expected: "\(missing) more bytes of the record at byte \(offset)")
    }
  }

  /// The position of the next record in the file.
  private var offset: UInt64 { buffer.offset }

  /// A big-endian number in the next record or header.
  private func word(_ at: Int) -> UInt32 {
    UInt32(bigEndianBytes: buffer.bytes[buffer.position + at..<buffer.position + at + 4])
  }

  private mutating func readFileHeader() throws(Defect) -> DataLink? {
    guard buffer.bytes.starts(with: Self.magic.prefix(buffer.count)) else {
      guard let reason = ForeignCapture(buffer.bytes, isAll: false).description else { return nil }
      throw .notACapture(reason: reason)
    }
    guard buffer.count >= Self.fileHeader else { return nil }
    guard word(8) == 1 else { throw .notACapture(reason: "its version is \(word(8)), and only version 1 is known") }
    guard let link = DataLink(rawValue: word(12)) else {
      throw .notACapture(
        reason: "its data link type is \(word(12)); only 1001 (HCI), 1002 (H4) and 2001 (Linux monitor) are known")
    }
    _ = buffer.take(Self.fileHeader)
    return link
  }
}
