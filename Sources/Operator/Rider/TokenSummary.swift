package import StepProtocol

/// What was made of a plan for a rider.
package struct TokenSummary: Sendable, Equatable {
  /// The files that were written, as paths from the vehicle's folder.
  package let files: [String]
  package let token: Token
  /// Where, from the vehicle's folder, the rider has to put the device's private key; nil when it is there.
  package let missingDeviceKey: String?
  /// When the rider's certificate ends, Unix time.
  package let certificateEnd: Int64

  /// The key that the token is bound to, for the rider to compare with what the device shows.
  package var deviceKey: Thumbprint { token.device.thumbprint }
}
