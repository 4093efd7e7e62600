import Cryptography
public import Domain
import Encoding

/// The content of an NTAG 424 DNA, new at each reading: the URI of its secure dynamic message (SDM).
///
///     stepctl:<vehicle uuid>/<step>?e=<32 hexadecimal digits>&c=<16 hexadecimal digits>
///
/// The tag puts its encrypted UID and reading counter into `e`, and a MAC into `c` (NXP AN12196, "encrypted PICCData"
/// with a CMAC over no further input). It writes digits in upper case only, so lower case is refused.
public struct DynamicTag: Hashable, Sendable {
  public let vehicle: UUID
  public let step: StepID
  /// `PICCENCData`.
  private let encrypted: [UInt8]
  /// `SDMMAC`.
  private let mac: [UInt8]

  /// Including its colon.
  public static let scheme = "stepctl:"
  private static let encryptedSize = 16
  private static let macSize = 8

  /// The two keys that verify a tag. Each tag has its own.
  public struct Keys: Hashable, Sendable {
    /// The size of each key, bytes.
    public static let size = 16
    /// `SDMMetaReadKey`: decrypts the UID and the counter.
    public let metaRead: [UInt8]
    /// `SDMFileReadKey`: the MAC's session key is derived from it.
    public let fileRead: [UInt8]

    /// Nil unless each has 16 bytes.
    public init?(metaRead: [UInt8], fileRead: [UInt8]) {
      guard metaRead.count == Self.size, fileRead.count == Self.size else { return nil }
      self.metaRead = metaRead
      self.fileRead = fileRead
    }
  }

  /// What a genuine tag reported.
  public struct Reading: Hashable, Sendable {
    public let uid: TagUID
    /// How often the tag was read (`SDMReadCtr`), 24 bits. It never decreases.
    public let counter: UInt32

    public init(uid: TagUID, counter: UInt32) {
      self.uid = uid
      self.counter = counter
    }
  }

  /// Why a text is not the URI of a dynamic tag.
  public enum ParsingError: Error, Equatable, CustomStringConvertible {
    /// A text of another kind.
    case notDynamicTag
    /// It has the scheme, but the wrong form.
    case malformed(String)

    public var description: String {
      switch self {
      case .notDynamicTag: "not the URI of a dynamic tag"
      case .malformed(let reason): "the URI of a dynamic tag that cannot be read: \(reason)"
      }
    }
  }

  /// Whether a text is meant as such a URI, well formed or not: it has our scheme, and a query, which no label has.
  public static func isMeant(by text: String) -> Bool {
    text.utf8.starts(with: scheme.utf8) && text.utf8.contains(UInt8(ascii: "?"))
  }

  /// Reads the URI as the tag gave it. Only `reading(with:)` tells whether it is genuine.
  public init(parsing text: String) throws(ParsingError) {
    guard Self.isMeant(by: text), text.utf8.count <= Proof.maximumContent else { throw .notDynamicTag }
    func split(_ text: Substring.UTF8View, at separator: Unicode.Scalar) -> [Substring.UTF8View] {
      text.split(separator: UInt8(ascii: separator), omittingEmptySubsequences: false)
    }
    let parts = split(text.utf8.dropFirst(Self.scheme.utf8.count), at: "?")
    do throws(StepPath.Flaw) {
      let path = try StepPath(parts[0])
      (vehicle, step) = (path.vehicle, path.step)
    } catch {
      throw .malformed(error.reason)
    }
    let values = parts.count == 2 ? split(parts[1], at: "&") : []
    guard values.count == 2, let encrypted = Self.value("e=", values[0], count: Self.encryptedSize),
      let mac = Self.value("c=", values[1], count: Self.macSize)
    else { throw .malformed("expected e= with 32 and c= with 16 hexadecimal digits in upper case") }
    self.encrypted = encrypted
    self.mac = mac
  }

  private static func value(_ name: String, _ text: Substring.UTF8View, count: Int) -> [UInt8]? {
    guard text.starts(with: name.utf8) else { return nil }
    let digits = String(decoding: text.dropFirst(name.utf8.count), as: UTF8.self)
    guard let bytes = hexadecimal(digits), bytes.count == count, hexadecimal(bytes).utf8.elementsEqual(digits.utf8)
    else { return nil }
    return bytes
  }

  /// The content to write to a tag: the URI with zeros where the tag will put its own digits, and the offsets of those
  /// places, in bytes from the beginning of the URI. The MAC covers no input: `SDMMACInputOffset` equals
  /// `SDMMACOffset`.
  public static func template(vehicle: UUID, step: StepID) -> (uri: String, encryptedOffset: Int, macOffset: Int) {
    func zeros(_ size: Int) -> String { String(repeating: "0", count: 2 * size) }
    let beforeEncrypted = "\(scheme)\(vehicle)/\(step)?e="
    let beforeMAC = beforeEncrypted + zeros(encryptedSize) + "&c="
    return (beforeMAC + zeros(macSize), beforeEncrypted.utf8.count, beforeMAC.utf8.count)
  }

  /// The UID and the counter, if the tag with these keys made the message; nil if it was forged or changed.
  public func reading(with keys: Keys) -> Reading? {
    // PICCDataTag, UID, SDMReadCtr (low byte first), random bytes (AN12196, decryption of PICCData). The PICCDataTag
    // 0xC7 says that UID and counter are both present, and that the UID has 7 bytes.
    let data = AES128.decrypt(encrypted, keys.metaRead)
    let genuine = AES128.shortMAC([], Self.sessionKey(keys.fileRead, data[1..<11]))
    guard constantTimeEqual(genuine, mac), data[0] == 0xC7, let uid = TagUID(Array(data[1..<8])) else { return nil }
    return Reading(uid: uid, counter: UInt32(littleEndianBytes: data[8..<11]))
  }

  /// `KSesSDMFileReadMAC`, from the session vector SV2 over the UID and the counter, in the byte order of the data.
  static func sessionKey(_ fileRead: [UInt8], _ uidAndCounter: ArraySlice<UInt8>) -> [UInt8] {
    AES128.mac([0x3C, 0xC3, 0x00, 0x01, 0x00, 0x80] + uidAndCounter, fileRead)
  }
}
