package import Domain

/// What a proof of presence must show before a step moves.
package struct AccessPolicy: Equatable, Sendable {
  /// The farthest zone from which a step may be moved: immediate or near.
  package var zone: Zone
  /// The ways to prove presence that are accepted.
  package var proofs: Set<ProofMethod>
  /// Whether identifiers that can be copied are enough: beacons that always send the same, plain tags, and codes.
  package var acceptsStatic: Bool
  /// How old a proof may be, seconds.
  package var proofAge: Double

  package init(
    zone: Zone = .near, proofs: Set<ProofMethod> = [.beacon], acceptsStatic: Bool = true, proofAge: Double = 10
  ) {
    self.zone = zone
    self.proofs = proofs
    self.acceptsStatic = acceptsStatic
    self.proofAge = proofAge
  }

  enum Key: String, TOMLKey {
    case zone, proofs
    case acceptsStatic = "static"
    case proofAge = "proof_age_s"
  }

  init(_ table: TOMLTable<Key>) throws(ConfigurationError) {
    self.init()
    zone = try table.optional(.zone, .word([.immediate, .near])) ?? zone
    proofs = try table.optional(.proofs, .words(ProofMethod.allCases)) ?? proofs
    acceptsStatic = try table.optional(.acceptsStatic, .boolean) ?? acceptsStatic
    proofAge = try table.optional(.proofAge, .number(in: 1...60)) ?? proofAge
  }
}
