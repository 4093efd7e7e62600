import Domain
import Encoding
import StepProtocol

/// Keys, riders and questions, which cost more than all the rest of a simulation and serve many.
final class SimulationCrew {
  let decryption = DecryptionKey()
  let signing = SigningKey()
  let operatorKey = SigningKey()
  /// The last one sends nothing before all is well again.
  private(set) var riders: [Rider] = []
  private var questions: [[[UInt8]]]

  static let wall: Int64 = 1_800_000_000

  init() {
    questions = Array(repeating: [], count: 6)
    riders = (0..<3).map { _ in
      let device = SigningKey()
      let token = Token(
        issuer: "test", subject: "rider", vehicle: car.uuid, steps: [left, right], notBefore: Self.wall - 60,
        expires: Self.wall + 3_600, device: device.verificationKey)
      return Rider(device: device, token: token.signed(by: operatorKey), controller: decryption.encryptionKey)
    }
  }

  /// The rider's question of this number about a step. Another controller may be asked the same.
  func question(_ number: Int, by rider: Int, about step: StepID) -> [UInt8] {
    let index = rider * 2 + (step == left ? 0 : 1)
    while questions[index].count <= number { questions[index].append(riders[rider].command(step, .status)) }
    return questions[index][number]
  }
}

/// What was counted in simulations: one in which nothing happens shows nothing.
struct SimulationTotals: CustomStringConvertible {
  var (commands, motions, ends, stops, reversals, retractions, backOffs, kills) = (0, 0, 0, 0, 0, 0, 0, 0)
  /// The greatest force against something in the way, and what is left of it after backing off, newtons.
  var (force, residue) = (0.0, 0.0)
  var refusals: [String: Int] = [:]
  var faults: [String: Int] = [:]

  mutating func add(_ other: SimulationTotals) {
    commands += other.commands
    motions += other.motions
    ends += other.ends
    stops += other.stops
    reversals += other.reversals
    retractions += other.retractions
    backOffs += other.backOffs
    kills += other.kills
    force = max(force, other.force)
    residue = max(residue, other.residue)
    refusals.merge(other.refusals, uniquingKeysWith: +)
    faults.merge(other.faults, uniquingKeysWith: +)
  }

  var description: String {
    func list(_ counts: [String: Int]) -> String {
      counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
    }
    return "\(commands) commands, \(motions) motions, \(ends) of them ended where they should, \(stops) stops, "
      + "\(reversals) reversals, \(retractions) retractions, \(backOffs) back-offs, \(kills) kills, at most \(Int(force)) N and then \(Int(residue)) N; "
      + "refused: \(list(refusals)); faults: \(list(faults))"
  }
}

/// What a statement says. Its signature is not checked, because that takes longer than all the rest; other tests check
/// every one.
struct SignedState {
  let position: Position
  let phase: Phase
  let fault: String?
  let epoch: [UInt8]
  let clock: Int64
  let command: [UInt8]?
  let challenge: [UInt8]?
  let refusal: String?

  init(_ payload: [UInt8]) {
    let text = try! JSON(parsing: payload)["statement"]!.string!
    let claims = try! JSON(parsing: Base64URL.decode(text.split(separator: ".")[1])!)
    position = Position(rawValue: claims["position"]!.string!)!
    phase = Phase(rawValue: claims["phase"]!.string!)!
    fault = claims["fault"]?.string
    epoch = Base64URL.decode(claims["epoch"]!.string!)!
    clock = claims["clock"]!.integer!
    command = claims["command"]?.string.flatMap { Base64URL.decode($0) }
    challenge = claims["challenge"]?.string.flatMap { Base64URL.decode($0) }
    refusal = claims["refusal"]?["code"]?.string
  }
}
