public import Encoding

/// What a program's end says to a script. `stepctl(1)` lists them all, `stepd(8)` those that stepd ends with.
///
/// From 64 on they are those of sysexits.h, which shells and mail systems have used for decades.
public enum ExitStatus: Int32, CaseIterable, Sendable {
  case done = 0
  case failure = 1
  case notLocated = 3
  case otherSide = 4
  case refused = 5
  case unconfirmed = 6
  case usage = 64
  case badData = 65
  case noInput = 66
  case unavailable = 69
  case inputOutput = 74
  case noPermission = 77
  case configuration = 78

  /// The word for it in JSON; it stays the same in later versions.
  public var word: String {
    switch self {
    case .done: "done"
    case .failure: "failure"
    case .notLocated: "not_located"
    case .otherSide: "other_side"
    case .refused: "refused"
    case .unconfirmed: "unconfirmed"
    case .usage: "usage"
    case .badData: "bad_data"
    case .noInput: "no_input"
    case .unavailable: "unavailable"
    case .inputOutput: "input_output"
    case .noPermission: "no_permission"
    case .configuration: "configuration"
    }
  }

  /// Whether it is how a command to a step ended, and not a fault of something else.
  public var isOutcome: Bool {
    switch self {
    case .done, .notLocated, .otherSide, .refused, .unconfirmed: true
    case .failure, .usage, .badData, .noInput, .unavailable, .inputOutput, .noPermission, .configuration: false
    }
  }
}

/// An error that says what it means to the person who started the program.
///
/// `description` is the line that this person reads: what and where, in lower case, without a full stop.
public protocol Failure: Error, CustomStringConvertible {
  var exitStatus: ExitStatus { get }
  /// What to do; nil where the line says it already.
  var hint: String? { get }
  /// What a program is told beyond `exitStatus`, where the command prints JSON.
  var details: [JSON.Member] { get }
  /// Whether a signal ended the wait: the program then ends as the signal would have ended it.
  var isInterruption: Bool { get }
}

extension Failure {
  public var hint: String? { nil }
  public var details: [JSON.Member] { [] }
  public var isInterruption: Bool { false }
}
