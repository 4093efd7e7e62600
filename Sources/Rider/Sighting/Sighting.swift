public import Domain
public import Ranging
public import SystemIO

/// The rider at a step: which step, how it was found, and when. A proof is a sighting in the form of the protocol.
public struct Sighting: Sendable {
  public let step: Step
  /// What the vehicle is told about the sighting.
  public let proof: Proof
  /// When the last supporting evidence was heard or read.
  public let found: Instant
  /// The evidence for the sighting, to show to people.
  public let evidence: Evidence

  /// The evidence for a sighting.
  public enum Evidence: Sendable {
    /// What was heard from the vehicle's beacons.
    case beacons(Location)
    case tag(TagUID)
    case code
    /// The vehicle said that it hears this device at the step.
    case vehicle
  }

  public var method: ProofMethod { proof.method }

  /// A sighting from a step's tag.
  public init(tag uid: TagUID, content: String, of step: Step, found: Instant) {
    self.init(step, .tag(uid: uid, content: content), found, .tag(uid))
  }

  /// A sighting from a step's code.
  public init(code content: String, of step: Step, found: Instant) {
    self.init(step, .code(content: content), found, .code)
  }

  /// A sighting at the step in whose reach the vehicle hears this device.
  package init(heardAt step: Step, found: Instant) {
    self.init(step, .heard, found, .vehicle)
  }

  /// A sighting from the beacons, if they are enough to locate the rider.
  ///
  /// A recording counts as if it had just been made: the radio's clock tells how old a frame was. That loses no
  /// security, because RSSI is only the client's claim in any case.
  ///
  /// - Parameters:
  ///   - made: when the decision was made.
  /// - Returns: nil if the rider is not located.
  public init?(_ location: Location, made: Instant) {
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

  private init(_ step: Step, _ proof: Proof, _ found: Instant, _ evidence: Evidence) {
    self.step = step
    self.proof = proof
    self.found = found
    self.evidence = evidence
  }
}
