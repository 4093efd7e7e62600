/// One record of a message, its chunks put together (NFC Forum, NDEF 1.0, 2.3.2).
public struct NDEFRecord: Hashable, Sendable {
  /// What the type means (NDEF 1.0, 3.2.6). Unchanged (6) is for chunks only, and reserved (7) is read as unknown.
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
  /// Empty when there is none.
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

  /// Whether it is of a type that the NFC Forum defined, such as `T`. Such names are compared byte by byte (RTD 1.0, 3.2).
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
