public import Domain
public import Ranging

/// The rider at a step: which step, how that was found, and when. A proof is a sighting as the protocol writes it.
public struct Sighting: Sendable {
  public let step: Step
  /// What the vehicle is told of it.
  public let proof: Proof
  /// When the last thing that supports it was heard or read.
  public let found: ContinuousClock.Instant
  /// What it rests on, for people to see.
  public let evidence: Evidence

  /// What a sighting rests on.
  public enum Evidence: Sendable {
    /// What was heard of the vehicle's beacons.
    case beacons(Location)
    case tag(TagUID)
    case code
    /// The vehicle told that it hears this device there.
    case vehicle
  }

  public var method: ProofMethod { proof.method }

  /// A step's tag that was read.
  public init(tag uid: TagUID, content: String, of step: Step, found: ContinuousClock.Instant) {
    self.init(step, .tag(uid: uid, content: content), found, .tag(uid))
  }

  /// A step's code that was read.
  public init(code content: String, of step: Step, found: ContinuousClock.Instant) {
    self.init(step, .code(content: content), found, .code)
  }

  /// The step in whose reach the vehicle hears this device.
  package init(heardAt step: Step, found: ContinuousClock.Instant) {
    self.init(step, .heard, found, .vehicle)
  }

  /// What the beacons say, where that is enough to locate the rider.
  ///
  /// A recording counts as if it had just been made: the radio's clock tells how old a frame was. Nothing is lost by
  /// that, because RSSI is the client's word either way.
  ///
  /// - Parameters:
  ///   - made: when the decision was made.
  /// - Returns: nil when the rider is not located.
  public init?(_ location: Location, made: ContinuousClock.Instant) {
    guard location.isLocated, let step = location.facing, let reading = location.reading(of: step) else { return nil }
    let beacons = location.readings.compactMap { reading -> HeardBeacon? in
      guard let minor = reading.minor, let power = reading.measuredPower, let rssi = reading.rssi else { return nil }
      return HeardBeacon(
        major: reading.step.major, minor: minor, rssi: rssi, measuredPower: Int(power), packets: reading.packets)
    }
    self.init(
      step, .beacon(zone: reading.zone, isLocated: true, beacons: beacons),
      made - .milliseconds(Int64((reading.age ?? 0) * 1000)), .beacons(location))
  }

  private init(_ step: Step, _ proof: Proof, _ found: ContinuousClock.Instant, _ evidence: Evidence) {
    self.step = step
    self.proof = proof
    self.found = found
    self.evidence = evidence
  }
}
