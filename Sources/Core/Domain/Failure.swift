public import Encoding

/// A program's exit status, for scripts. `stepctl(1)` lists them all; `stepd(8)` lists those of stepd.
///
/// From 64 on they follow sysexits.h, which shells and mail systems have used for decades.
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

  /// The word for it in JSON, which later versions keep.
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

  /// Whether it is the outcome of a command to a step, and not some other failure.
  public var isOutcome: Bool {
    switch self {
    case .done, .notLocated, .otherSide, .refused, .unconfirmed: true
    case .failure, .usage, .badData, .noInput, .unavailable, .inputOutput, .noPermission, .configuration: false
    }
  }
}

/// An error that the user of the program can understand.
///
/// `description` is the line for the user: what failed and where, in lower case, without a full stop.
public protocol Failure: Error, CustomStringConvertible {
  var exitStatus: ExitStatus { get }
  /// What to do; nil if the line already says so.
  var hint: String? { get }
  /// Members for the command's JSON output, in addition to `exitStatus`.
  var details: [JSON.Member] { get }
  /// Whether a signal ended the wait. The program must then end as if the signal had ended it.
  var isInterruption: Bool { get }
}

extension Failure {
  public var hint: String? { nil }
  public var details: [JSON.Member] { [] }
  public var isInterruption: Bool { false }
}
