import Domain
import Encoding
import Terminal

/// A step's tag or code that was read. It names its step, so there is no zone and no distance.
struct ReadReport: PresenceReport {
  let vehicle: Vehicle
  let step: Step
  let proof: Proof
  /// When it was read.
  let time: ContinuousClock.Instant
  /// How long that took, seconds.
  let elapsed: Double

  var presence: Presence? {
    Presence(step: step, proof: proof, found: time, evidence: "\(summary): \(source) (\(proof.method.rawValue))")
  }

  var summary: String { "at the \(step.id) step" }
  var lines: [String] { ["\(step.id.description.aligned(to: 8)) \(source)"] }
  /// Nothing is missing.
  var advice: String { summary }

  private var source: String {
    switch proof {
    case .tag(let uid, _): "tag \(uid)"
    case .code, .beacon: "the code on it"
    }
  }

  var json: JSON {
    var members: [JSON.Member] = [
      .init("elapsed_s", .rounded(elapsed, places: 3)),
      .init("vehicle", .string(vehicle.uuid.description)),
      .init("located", true),
      .init("step", .string(step.id.description)),
      .init("zone", .string(Zone.unknown.rawValue)),
      .init("distance_m", .null),
      .init("distance_low_m", .null),
      .init("distance_high_m", .null),
      .init("method", .string(proof.method.rawValue)),
    ]
    if case .tag(let uid, _) = proof { members.append(.init("uid", .string(uid.description))) }
    return .object(members + [.init("steps", .array([]))])
  }
}
