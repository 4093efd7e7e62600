package import Domain

/// Which proofs of presence the vehicle accepts, and who may close a step.
package struct Policy: Sendable, Equatable {
  package let methods: Set<ProofMethod>
  /// Whether identifiers that can be copied are enough: beacons that always send the same, plain tags, and codes.
  package let acceptsStatic: Bool
  /// Whether the vehicle must hear the rider's device beside whatever else is proved.
  package let needsHearing: Bool
  /// The farthest zone that is close enough.
  package let zone: Zone
  /// How old a proof may be, milliseconds.
  package let proofAge: Int64
  /// After a step has opened, only the device that opened it may close it for so long, milliseconds.
  package let reserve: Int64

  package init(
    methods: Set<ProofMethod>, acceptsStatic: Bool = true, needsHearing: Bool = false, zone: Zone,
    proofAge: Int64, reserve: Int64 = Self.standardReserve
  ) {
    self.methods = methods
    self.acceptsStatic = acceptsStatic
    self.needsHearing = needsHearing
    self.zone = zone
    self.proofAge = proofAge
    self.reserve = reserve
  }

  package static let standardReserve: Int64 = 30_000

  /// What a rider is told of it.
  package var presence: PresencePolicy {
    PresencePolicy(methods: methods, zone: zone, acceptsStatic: acceptsStatic, needsHearing: needsHearing)
  }
}
