package import Domain

/// Which proofs of presence the vehicle accepts, and who may close a step.
package struct Policy: Sendable, Equatable {
  package let methods: Set<ProofMethod>
  /// Whether identifiers that can be copied are enough: static beacons, plain tags, and codes.
  package let acceptsStatic: Bool
  /// Whether the vehicle must also hear the rider's device, whatever else is proved.
  package let needsHearing: Bool
  /// How strong a link must be over which a command comes, dBm; nil for any strength. Only with `needsHearing`: a
  /// strength alone shows neither the side nor the device, because a relay has a strength of its own.
  package let leastLinkLevel: Int8?
  /// The farthest zone that is near enough.
  package let zone: Zone
  /// The greatest age of a proof, milliseconds.
  package let proofAge: Int64
  /// How long after a step has opened only the device that opened it may close it, milliseconds.
  package let reserve: Int64

  package init(
    methods: Set<ProofMethod>, acceptsStatic: Bool = true, needsHearing: Bool = false, leastLinkLevel: Int8? = nil,
    zone: Zone, proofAge: Int64, reserve: Int64 = Self.standardReserve
  ) {
    self.methods = methods
    self.acceptsStatic = acceptsStatic
    self.needsHearing = needsHearing
    self.leastLinkLevel = leastLinkLevel
    self.zone = zone
    self.proofAge = proofAge
    self.reserve = reserve
  }

  package static let standardReserve: Int64 = 30_000

  /// The part of the policy that riders are told.
  package var presence: PresencePolicy {
    PresencePolicy(methods: methods, zone: zone, acceptsStatic: acceptsStatic, needsHearing: needsHearing)
  }
}
