/// A URI record (NFC Forum, RTD-URI 1.0), or a record whose type is an absolute URI (NDEF 1.0, 3.2.6).
public struct NDEFURI: Hashable, Sendable {
  /// With its prefix.
  public let uri: String

  public init(_ uri: String) { self.uri = uri }

  /// Reads a record; nil if it is of another type.
  ///
  /// - Throws: `malformedRecord`.
  public init?(_ record: NDEFRecord) throws(NDEFError) {
    let prefix: String
    let rest: [UInt8]
    if record.isWellKnown("U") {
      guard let code = record.payload.first else { throw .malformedRecord("a URI without an identifier code") }
      // 3.2.2: codes behind the end of the table are reserved and stand for no prefix.
      prefix = Int(code) < Self.prefixes.count ? Self.prefixes[Int(code)] : ""
      rest = Array(record.payload.dropFirst())
    } else if record.typeName == .absoluteURI {
      prefix = ""
      rest = record.type
    } else {
      return nil
    }
    // 3.2.3: the rest is UTF-8. No URI and no IRI has control characters (RFC 3987, 2.2).
    guard let text = String(validating: rest, as: UTF8.self),
      !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
    else { throw .malformedRecord("a URI that is not UTF-8, or has control characters") }
    uri = prefix + text
  }

  /// With the longest prefix of the table.
  public var record: NDEFRecord {
    var code = 0
    for (index, prefix) in Self.prefixes.enumerated()
    where uri.utf8.starts(with: prefix.utf8) && prefix.utf8.count > Self.prefixes[code].utf8.count {
      code = index
    }
    let rest = uri.utf8.dropFirst(Self.prefixes[code].utf8.count)
    return NDEFRecord(.wellKnown, type: Array("U".utf8), payload: [UInt8(code)] + Array(rest))
  }

  /// By identifier code (RTD-URI 1.0, 3.2.2, table 3).
  private static let prefixes = [
    "", "http://www.", "https://www.", "http://", "https://", "tel:", "mailto:", "ftp://anonymous:anonymous@",
    "ftp://ftp.", "ftps://", "sftp://", "smb://", "nfs://", "ftp://", "dav://", "news:", "telnet://", "imap:",
    "rtsp://", "urn:", "pop:", "sip:", "sips:", "tftp:", "btspp://", "btl2cap://", "btgoep://", "tcpobex://",
    "irdaobex://", "file://", "urn:epc:id:", "urn:epc:tag:", "urn:epc:pat:", "urn:epc:raw:", "urn:epc:", "urn:nfc:",
  ]
}
