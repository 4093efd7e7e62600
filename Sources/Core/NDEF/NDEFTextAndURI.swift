/// A Text record (NFC Forum, RTD-Text 1.0).
public struct NDEFText: Hashable, Sendable {
  /// A language tag (RFC 5646), such as `en` or `en-US`.
  public let language: String
  public let text: String

  /// - Precondition: the language is ASCII and at most 63 bytes long.
  public init(_ text: String, language: String = "en") {
    precondition(language.utf8.count <= 63 && language.utf8.allSatisfy { $0 < 0x80 })
    self.language = language
    self.text = text
  }

  /// Reads a record; nil if it is of another type.
  ///
  /// - Throws: `malformedRecord`.
  public init?(_ record: NDEFRecord) throws(NDEFError) {
    guard record.isWellKnown("T") else { return nil }
    // 3.2.1: the status byte: bit 7 is set for UTF-16, bit 6 MUST be zero, bits 5 to 0 are the language's length.
    guard let status = record.payload.first else { throw .malformedRecord("a text without a status byte") }
    guard status & 0x40 == 0 else { throw .malformedRecord("a text with a reserved bit") }
    let rest = record.payload.dropFirst()
    let languageLength = Int(status & 0x3F)
    guard languageLength <= rest.count else { throw .malformedRecord("a text that ends within its language") }
    // 3.3: the language's name is US-ASCII.
    guard let language = String(validating: rest.prefix(languageLength), as: Unicode.ASCII.self) else {
      throw .malformedRecord("a language that is not ASCII")
    }
    let content = rest.dropFirst(languageLength)
    let text = status & 0x80 == 0 ? String(validating: content, as: UTF8.self) : Self.utf16(content)
    guard let text else { throw .malformedRecord("a text that is not \(status & 0x80 == 0 ? "UTF-8" : "UTF-16")") }
    self.language = language
    self.text = text
  }

  /// 3.4: the byte order mark gives the byte order; without one it is big-endian.
  private static func utf16(_ bytes: ArraySlice<UInt8>) -> String? {
    guard bytes.count.isMultiple(of: 2) else { return nil }
    var units = stride(from: bytes.startIndex, to: bytes.endIndex, by: 2).map {
      UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1])
    }
    if units.first == 0xFFFE { units = units.map(\.byteSwapped) }
    return String(validating: units.first == 0xFEFF ? units.dropFirst() : units[...], as: UTF16.self)
  }

  /// The record, in UTF-8.
  public var record: NDEFRecord {
    NDEFRecord(
      .wellKnown, type: Array("T".utf8), payload: [UInt8(language.utf8.count)] + Array(language.utf8) + Array(text.utf8)
    )
  }
}

/// A URI record (NFC Forum, RTD-URI 1.0), or a record whose type is an absolute URI (NDEF 1.0, 3.2.6).
public struct NDEFURI: Hashable, Sendable {
  /// The complete URI, with its prefix.
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
      // 3.2.2: codes beyond the table are reserved and mean no prefix.
      prefix = Int(code) < Self.prefixes.count ? Self.prefixes[Int(code)] : ""
      rest = Array(record.payload.dropFirst())
    } else if record.typeName == .absoluteURI {
      prefix = ""
      rest = record.type
    } else {
      return nil
    }
    // 3.2.3: the rest is UTF-8. URIs and IRIs have no control characters (RFC 3987, 2.2).
    guard let text = String(validating: rest, as: UTF8.self),
      !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
    else { throw .malformedRecord("a URI that is not UTF-8, or has control characters") }
    uri = prefix + text
  }

  /// The record, with the longest matching prefix.
  public var record: NDEFRecord {
    var code = 0
    for (index, prefix) in Self.prefixes.enumerated()
    where uri.utf8.starts(with: prefix.utf8) && prefix.utf8.count > Self.prefixes[code].utf8.count {
      code = index
    }
    let rest = uri.utf8.dropFirst(Self.prefixes[code].utf8.count)
    return NDEFRecord(.wellKnown, type: Array("U".utf8), payload: [UInt8(code)] + Array(rest))
  }

  /// The prefixes, by identifier code (RTD-URI 1.0, 3.2.2, table 3).
  private static let prefixes = [
    "", "http://www.", "https://www.", "http://", "https://", "tel:", "mailto:", "ftp://anonymous:anonymous@",
    "ftp://ftp.", "ftps://", "sftp://", "smb://", "nfs://", "ftp://", "dav://", "news:", "telnet://", "imap:",
    "rtsp://", "urn:", "pop:", "sip:", "sips:", "tftp:", "btspp://", "btl2cap://", "btgoep://", "tcpobex://",
    "irdaobex://", "file://", "urn:epc:id:", "urn:epc:tag:", "urn:epc:pat:", "urn:epc:raw:", "urn:epc:", "urn:nfc:",
  ]
}
