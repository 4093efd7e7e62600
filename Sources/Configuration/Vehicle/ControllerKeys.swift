/// The public keys of a vehicle's controller, 32 bytes each.
package struct ControllerKeys: Equatable, Sendable {
  /// X25519: what commands are encrypted to.
  package var encryption: [UInt8]
  /// Ed25519: what statements are signed with.
  package var signing: [UInt8]

  package init(encryption: [UInt8], signing: [UInt8]) {
    self.encryption = encryption
    self.signing = signing
  }
}
