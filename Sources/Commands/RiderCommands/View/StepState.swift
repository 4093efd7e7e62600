import Domain
import StepProtocol

/// How a step stands, as the picture shows it.
enum StepState: Equatable {
  case retracted
  /// On its way; nil where nobody says which way.
  case sliding(Command.Move.Target?)
  case extended
  /// At rest between its ends, or in a fault.
  case held
  /// The vehicle has not said it.
  case unknown

  /// - Parameter wish: where this device's last command sends the step. A statement says only that the step moves.
  init(_ statement: Statement?, wish: Command.Move.Target? = nil) {
    guard let statement else {
      self = .unknown
      return
    }
    let start = statement.position
    self =
      switch statement.phase {
      case .moving: .sliding(wish ?? (start == .close ? .open : start == .open ? .close : nil))
      case .fault: .held
      case .idle: start == .open ? .extended : start == .close ? .retracted : .held
      case .other: .unknown
      }
  }

  var word: String {
    switch self {
    case .retracted: "in"
    case .sliding: "sliding"
    case .extended: "out"
    case .held: "held"
    case .unknown: "unknown"
    }
  }

  /// How far out it is drawn, in columns, and what is drawn at its outer end in place of its own character.
  ///
  /// - Parameters:
  ///   - moment: counts the pictures of a motion.
  ///   - outward, inward: the ends of a step that slides out or in.
  func drawn(at moment: Int, outward: Character, inward: Character) -> (columns: Int, end: Character?) {
    switch self {
    case .retracted: (1, nil)
    case .sliding(.open): (1 + moment % Self.reach, outward)
    case .sliding(.close): (Self.reach - moment % Self.reach, inward)
    case .sliding(nil): (1 + moment % Self.reach, "~")
    case .extended: (Self.reach, nil)
    case .held: (Self.reach - 1, "!")
    case .unknown: (2, "?")
    }
  }

  /// Columns of a step that is out.
  static let reach = 4
}
