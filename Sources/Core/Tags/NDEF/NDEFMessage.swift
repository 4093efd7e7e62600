/// Records that belong together, at least one (NFC Forum, NDEF 1.0, 2.3.1).
public struct NDEFMessage: Hashable, Sendable {
  public let records: [NDEFRecord]

  /// - Parameter records: none of them makes the empty message, which is one empty record (Type 2 Tag 1.1, A).
  public init(_ records: [NDEFRecord]) {
    self.records = records.isEmpty ? [.empty] : records
  }

  /// Whether it says nothing.
  public var isEmpty: Bool { records.allSatisfy { $0.typeName == .empty } }

  /// The message as it stands on a tag: no chunks, and the shortest form of each record.
  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    for (index, record) in records.enumerated() {
      var header = NDEFHeader(rawValue: record.typeName.rawValue)
      if index == 0 { header.insert(.messageBegin) }
      if index == records.count - 1 { header.insert(.messageEnd) }
      if record.payload.count <= 255 { header.insert(.shortRecord) }
      if !record.id.isEmpty { header.insert(.hasIDLength) }
      bytes += [header.rawValue, UInt8(record.type.count)]
      if header.contains(.shortRecord) {
        bytes.append(UInt8(record.payload.count))
      } else {
        let length = UInt32(record.payload.count)
        bytes += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) }
      }
      if !record.id.isEmpty { bytes.append(UInt8(record.id.count)) }
      bytes += record.type + record.id + record.payload
    }
    return bytes
  }
}
