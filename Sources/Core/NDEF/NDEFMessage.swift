import Encoding

/// A sequence of one record or more (NFC Forum, NDEF 1.0, 2.3.1).
public struct NDEFMessage: Hashable, Sendable {
  public let records: [NDEFRecord]

  /// - Parameter records: if there are none, the message has one empty record (Type 2 Tag 1.1, A).
  public init(_ records: [NDEFRecord]) {
    self.records = records.isEmpty ? [.empty] : records
  }

  /// Whether all of the records are empty.
  public var isEmpty: Bool { records.allSatisfy { $0.typeName == .empty } }

  /// The message in its form on a tag: without chunks, each record in its shortest form.
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
        bytes += UInt32(record.payload.count).bigEndianBytes
      }
      if !record.id.isEmpty { bytes.append(UInt8(record.id.count)) }
      bytes += record.type + record.id + record.payload
    }
    return bytes
  }
}

/// One record of a message, its chunks joined (NFC Forum, NDEF 1.0, 2.3.2).
public struct NDEFRecord: Hashable, Sendable {
  /// What the type means (NDEF 1.0, 3.2.6). Unchanged (6) is only for chunks; reserved (7) is read as unknown.
  public enum TypeName: UInt8, Sendable {
    case empty = 0
    case wellKnown = 1
    case media = 2
    case absoluteURI = 3
    case external = 4
    case unknown = 5
  }

  public let typeName: TypeName
  public let type: [UInt8]
  /// Empty if there is none.
  public let id: [UInt8]
  public let payload: [UInt8]

  /// - Precondition: type and id are at most 255 bytes long; an unknown record has no type, an empty one has nothing.
  public init(_ typeName: TypeName, type: [UInt8] = [], id: [UInt8] = [], payload: [UInt8] = []) {
    precondition(type.count <= 255 && id.count <= 255 && payload.count <= UInt32.max)
    precondition(typeName != .unknown || type.isEmpty)
    precondition(typeName != .empty || type.isEmpty && id.isEmpty && payload.isEmpty)
    self.typeName = typeName
    self.type = type
    self.id = id
    self.payload = payload
  }

  public static let empty = NDEFRecord(.empty)

  /// Whether its type is this one, which the NFC Forum defined, such as `T`. Such names are compared byte by byte (RTD
  /// 1.0, 3.2).
  func isWellKnown(_ name: String) -> Bool { typeName == .wellKnown && type.elementsEqual(name.utf8) }
}

/// The first byte of a record (NDEF 1.0, 3.2).
struct NDEFHeader: OptionSet {
  let rawValue: UInt8

  static let messageBegin = NDEFHeader(rawValue: 0x80)
  static let messageEnd = NDEFHeader(rawValue: 0x40)
  static let chunk = NDEFHeader(rawValue: 0x20)
  static let shortRecord = NDEFHeader(rawValue: 0x10)
  static let hasIDLength = NDEFHeader(rawValue: 0x08)

  var typeNameFormat: UInt8 { rawValue & 0x07 }
}

extension NDEFMessage {
  /// Reads one message that fills all the bytes.
  ///
  /// Lengths are checked against the remaining bytes before anything is copied, so that a record costs no more memory
  /// than its own bytes.
  ///
  /// - Throws: `malformedMessage`. Every MUST of NDEF 1.0 is checked; types and payloads are not.
  public init(parsing bytes: some Collection<UInt8>) throws(NDEFError) {
    var parser = NDEFParser(bytes: Array(bytes))
    self.init(try parser.message())
  }
}

private struct NDEFParser {
  let bytes: [UInt8]
  var position = 0

  init(bytes: [UInt8]) { self.bytes = bytes }

  func error(_ reason: String, at offset: Int) -> NDEFError { .malformedMessage(reason, offset: offset) }

  mutating func take(_ count: Int, _ what: String) throws(NDEFError) -> [UInt8] {
    guard count <= bytes.count - position else {
      throw error("\(what) takes \(count) bytes of \(bytes.count - position)", at: position)
    }
    defer { position += count }
    return Array(bytes[position..<position + count])
  }

  mutating func number(bytes count: Int, _ what: String) throws(NDEFError) -> Int {
    Int(bigEndianBytes: try take(count, what))
  }

  mutating func message() throws(NDEFError) -> [NDEFRecord] {
    var records: [NDEFRecord] = []
    // The record whose chunks are being read, with the payload so far.
    var unfinished: NDEFRecord?
    var payload: [UInt8] = []
    var isLast = false
    repeat {
      let start = position
      let header = NDEFHeader(rawValue: UInt8(try number(bytes: 1, "a record's header")))
      // 3.2.1: the first record has MB. 2.3.1: messages do not nest by flags, so no other record has it.
      guard header.contains(.messageBegin) == (start == 0) else {
        throw error(start == 0 ? "the first record does not begin a message" : "a second beginning", at: start)
      }
      // 2.3.3: neither an initial nor a middle chunk can end the message.
      guard !header.isSuperset(of: [.messageEnd, .chunk]) else {
        throw error("the message ends within a chunked record", at: start)
      }
      isLast = header.contains(.messageEnd)
      // 2.3.3, 3.2.6: middle and last chunks have the type name Unchanged; no other record has it.
      guard (header.typeNameFormat == 6) == (unfinished != nil) else {
        throw error(unfinished == nil ? "a chunk without a beginning" : "a chunked record is not continued", at: start)
      }
      let part = try record(header, start: start)
      payload += part.payload
      let first = unfinished ?? part
      if header.contains(.chunk) {
        unfinished = first
      } else {
        records.append(NDEFRecord(first.typeName, type: first.type, id: first.id, payload: payload))
        unfinished = nil
        payload = []
      }
    } while !isLast
    // A message fills its container (Type 2 Tag 1.1, 2.3.4; Type 4 Tag 2.0, 5.2).
    guard position == bytes.count else {
      throw error("\(bytes.count - position) more bytes behind the last record", at: position)
    }
    return records
  }

  /// One record, or one chunk of a record, as stored.
  private mutating func record(_ header: NDEFHeader, start: Int) throws(NDEFError) -> NDEFRecord {
    let typeLength = try number(bytes: 1, "a type length")
    // 3.2.4: SR makes the payload length one byte instead of four.
    let payloadLength = try number(bytes: header.contains(.shortRecord) ? 1 : 4, "a payload length")
    // 3.2.5: without IL, both the ID length and the ID are missing.
    let idLength = header.contains(.hasIDLength) ? try number(bytes: 1, "an ID length") : 0
    switch header.typeNameFormat {
    case 0:
      // 3.2.6: Empty has no type, no ID and no payload. A chunked record is not empty.
      guard typeLength == 0, idLength == 0, payloadLength == 0, !header.contains(.chunk) else {
        throw error("an empty record that is not empty", at: start)
      }
    case 5:
      // 3.2.6: Unknown has no type.
      guard typeLength == 0 else { throw error("an unknown record with a type", at: start) }
    case 6:
      // 2.3.3: middle and last chunks have no type and no IL.
      guard typeLength == 0, !header.contains(.hasIDLength) else {
        throw error("a chunk with a type or an ID of its own", at: start)
      }
    default: break
    }
    let type = try take(typeLength, "a type")
    let id = try take(idLength, "an ID")
    let payload = try take(payloadLength, "a payload")
    // 3.2.6: reserved (7) is to be treated as Unknown.
    guard let typeName = NDEFRecord.TypeName(rawValue: header.typeNameFormat), typeName != .unknown else {
      return NDEFRecord(.unknown, id: id, payload: payload)
    }
    return NDEFRecord(typeName, type: type, id: id, payload: payload)
  }
}
