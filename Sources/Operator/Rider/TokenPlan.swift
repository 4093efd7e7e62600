package import Domain
import Encoding
package import StepProtocol

/// What a rider is allowed to do, and for how long.
package struct TokenPlan: Sendable {
  package var rider: RiderName
  /// Nil for all steps of the vehicle.
  package var steps: [StepID]?
  /// Unix time.
  package var notBefore: Int64
  /// Seconds.
  package var lifetime: Int64
  /// The public key of a device that keeps its private key to itself. With nil, a new rider gets a new key, and a known
  /// rider keeps the present one.
  package var deviceKey: VerificationKey?

  package init(
    rider: RiderName, steps: [StepID]? = nil, notBefore: Int64, lifetime: Int64, deviceKey: VerificationKey? = nil
  ) {
    self.rider = rider
    self.steps = steps
    self.notBefore = notBefore
    self.lifetime = lifetime
    self.deviceKey = deviceKey
  }
}

/// The result of a plan for a rider.
package struct TokenSummary: Sendable, Equatable {
  /// The files that were written, as paths from the vehicle's folder.
  package let files: [String]
  package let token: Token
  /// Where the rider must put the device's private key, relative to the vehicle's folder; nil if it is already there.
  package let missingDeviceKey: String?
  /// When the rider's certificate ends, Unix time.
  package let certificateEnd: Int64

  /// The token's device key, which the rider compares with the device's own key.
  package var deviceKey: Thumbprint { token.device.thumbprint }
}
