package import StepProtocol

/// What was made of a plan.
package struct VehicleSummary: Sendable, Equatable {
  /// The files, as paths from the vehicle's folder.
  package let files: [String]
  /// The key that tokens are signed with.
  package let tokenKey: Thumbprint
  /// The key that commands are encrypted to.
  package let encryptionKey: Thumbprint
  /// The key that statements are signed with.
  package let signingKey: Thumbprint
  /// When the certificates of broker and controller end, Unix time.
  package let certificatesEnd: Int64
}
