package import Domain
package import StepProtocol

/// What a rider is to be allowed.
package struct TokenPlan: Sendable {
  package var rider: RiderName
  /// Nil for all that the vehicle has.
  package var steps: [StepID]?
  /// Unix time.
  package var notBefore: Int64
  /// Seconds.
  package var lifetime: Int64
  /// The public key of a device that keeps its private key to itself; nil to have one made, or to keep the one that
  /// the rider has.
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
