/// The controller's keys, and the key that its riders' tokens are signed with.
package struct KeyFiles: Equatable, Sendable {
  /// The path of the private X25519 JWK; nobody but its owner may read it.
  package var encryption: String
  /// The path of the private Ed25519 JWK; nobody but its owner may read it.
  package var signing: String
  /// The public Ed25519 key that tokens are signed with, 32 bytes.
  package var operatorKey: [UInt8]

  package init(encryption: String, signing: String, operatorKey: [UInt8]) {
    self.encryption = encryption
    self.signing = signing
    self.operatorKey = operatorKey
  }

  enum Key: String, TOMLKey {
    case encryption, signing
    case operatorKey = "operator"
  }

  init(_ table: TOMLTable<Key>) throws(ConfigurationError) {
    encryption = try table.required(.encryption, table.path)
    signing = try table.required(.signing, table.path)
    operatorKey = try table.required(.operatorKey, .key)
  }
}
