import Tags

/// What an NTAG 424 DNA gets, so that each reading of it gives a URI of its own.
package struct DynamicTagSetup: Sendable {
  /// The URI with zeros where the tag puts its own digits.
  package let uri: String
  /// Where in the URI those for its UID and counter begin, and those of the MAC.
  let offsets: (encrypted: Int, mac: Int)
  /// Key 0, which changes everything else.
  let masterKey: [UInt8]
  let metaReadKey: [UInt8]
  let fileReadKey: [UInt8]

  /// - Parameters:
  ///   - encryptedOffset: in the URI, in bytes; so is `macOffset`.
  ///   - masterKey: 16 bytes; so are the others.
  package init(
    uri: String, encryptedOffset: Int, macOffset: Int, masterKey: [UInt8], metaReadKey: [UInt8],
    fileReadKey: [UInt8]
  ) {
    self.uri = uri
    offsets = (encryptedOffset, macOffset)
    self.masterKey = masterKey
    self.metaReadKey = metaReadKey
    self.fileReadKey = fileReadKey
  }

  var message: NDEFMessage { NDEFMessage([NDEFURI(uri).record]) }

  /// The settings of the tag's file: its length takes two bytes, and the URI ends the message.
  package var settings: [UInt8] {
    let start = 2 + message.bytes.count - uri.utf8.count
    return DynamicMessageSettings(encryptedOffset: start + offsets.encrypted, macOffset: start + offsets.mac).bytes
  }
}
