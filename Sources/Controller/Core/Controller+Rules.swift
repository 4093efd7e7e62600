package import Domain

extension Controller {
  /// What the configuration says that may change while a controller runs: which tags are on the steps, and which proofs
  /// are enough.
  package struct Rules: Sendable {
    /// The same steps as before.
    let vehicle: Vehicle
    let policy: Policy
    let secrets: StepSecrets

    /// - Returns: nil where the vehicle has other steps: that is another vehicle.
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

  /// From here on these hold. What was accepted before goes on, and what was used up stays so.
  mutating func take(_ rules: Rules) {
    (vehicle, policy) = (rules.vehicle, rules.policy)
    proofs.replace(vehicle: rules.vehicle, policy: rules.policy, secrets: rules.secrets)
  }
}
