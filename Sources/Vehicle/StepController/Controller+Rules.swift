package import Domain

extension Controller {
  /// The part of the configuration that may change while a controller runs: which tags are on the steps, and which
  /// proofs are enough.
  package struct Rules: Sendable {
    /// Has the same steps as before.
    let vehicle: Vehicle
    let policy: Policy
    let secrets: StepSecrets

    /// - Returns: nil if the steps differ: that is another vehicle.
    package init?(vehicle: Vehicle, policy: Policy, secrets: StepSecrets, insteadOf former: Vehicle) {
      guard vehicle.uuid == former.uuid, vehicle.steps.map(Self.identity) == former.steps.map(Self.identity) else {
        return nil
      }
      (self.vehicle, self.policy, self.secrets) = (vehicle, policy, secrets)
    }

    private static func identity(of step: Step) -> Step {
      var step = step
      step.tags = []
      return step
    }
  }

  /// Applies new rules. Accepted commands go on, and used challenges and readings stay used.
  mutating func take(_ rules: Rules) {
    (vehicle, policy) = (rules.vehicle, rules.policy)
    proofs.replace(vehicle: rules.vehicle, policy: rules.policy, secrets: rules.secrets)
  }
}
