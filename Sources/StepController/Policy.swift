package import StepDomain

/// Which proofs of presence the vehicle accepts.
package struct Policy: Sendable, Equatable {
  package let methods: Set<ProofMethod>
  /// The farthest zone that is close enough.
  package let zone: Zone
  /// How old a proof may be, milliseconds.
  package let proofAge: Int64

  package init(methods: Set<ProofMethod>, zone: Zone, proofAge: Int64) {
    self.methods = methods
    self.zone = zone
    self.proofAge = proofAge
  }

  /// Judges a proof for a step.
  ///
  /// - Parameters:
  ///   - time: when the proof was heard or read, on the controller's clock, milliseconds.
  ///   - clock: now, on the same clock.
  /// - Returns: why it is not good enough, or nil.
  package func objection(to proof: Proof, heard time: Int64, for step: Step, at clock: Int64) -> RefusalCode? {
    guard methods.contains(proof.method) else { return .proofNotAccepted }
    guard time <= clock, clock - time <= proofAge else { return .staleProof }
    switch proof {
    case .beacon(let zone, let beacons):
      guard let own = beacons.first(where: { $0.major == step.major }),
        !beacons.contains(where: { $0.level > own.level })
      else { return .wrongStep }
      guard zone <= self.zone else { return .notNear }
      return nil
    }
  }
}
