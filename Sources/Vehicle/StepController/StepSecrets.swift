package import Domain
package import StepProtocol

/// The secrets of a vehicle's beacons and dynamic tags. With these the controller tells a fresh reading from a copy.
package struct StepSecrets: Sendable {
  package struct Tag: Sendable {
    package let step: StepID
    package let keys: DynamicTag.Keys

    package init(step: StepID, keys: DynamicTag.Keys) {
      self.step = step
      self.keys = keys
    }
  }

  /// For the steps whose iBeacons rotate their minors.
  package var minors: [StepID: RotatingMinor]
  /// The dynamic tags.
  package var tags: [TagUID: Tag]

  package init(minors: [StepID: RotatingMinor] = [:], tags: [TagUID: Tag] = [:]) {
    self.minors = minors
    self.tags = tags
  }
}
