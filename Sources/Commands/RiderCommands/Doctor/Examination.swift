import Domain
import Encoding
import Rider
import Terminal

/// An examined part, and the findings about it.
struct Examination {
  struct Finding {
    let subject: String
    let state: State
    let text: String
    /// The one command line to type.
    var remedy: String?
  }

  enum State: String, Comparable {
    case good = "ok"
    /// It works, but the user should know something about it.
    case warning
    case broken

    private var rank: Int {
      switch self {
      case .good: 0
      case .warning: 1
      case .broken: 2
      }
    }

    static func < (one: State, other: State) -> Bool { one.rank < other.rank }
  }

  /// A part of the system, or a radio.
  let title: String
  var findings: [Finding] = []
  /// The program's exit status if this part is broken.
  var exitStatus = ExitStatus.failure

  init(_ title: String) { self.title = title }

  var state: State { findings.map(\.state).max() ?? .good }

  mutating func find(_ subject: String, _ state: State, _ text: String, _ remedy: String? = nil) {
    findings.append(Finding(subject: subject, state: state, text: text, remedy: remedy))
  }

  /// Adds the reason why something is unusable.
  mutating func find(_ subject: String, _ failure: any Failure, _ remedy: String? = nil) {
    if state != .broken { exitStatus = failure.exitStatus }
    find(subject, .broken, failure.description, remedy)
    if remedy == nil, let hint = failure.hint { find(subject, .warning, hint) }
  }

  func lines(style: (String, Console.Style) -> String) -> [String] {
    [style(printable(title), .strong)]
      + findings.flatMap { finding in
        let state = finding.state.rawValue.aligned(to: 7)
        let styled =
          switch finding.state {
          case .good: style(state, .good)
          case .warning: style(state, .strong)
          case .broken: style(state, .bad)
          }
        return ["  \(styled)  \(finding.subject.aligned(to: 11)) \(printable(finding.text))"]
          + (finding.remedy.map { ["           type:       \(printable($0))"] } ?? [])
      }
  }

  var members: [JSON.Member] {
    [
      .init("state", .string(state.rawValue)),
      .init(
        "findings",
        .array(
          findings.map { finding in
            [
              "subject": .string(finding.subject), "state": .string(finding.state.rawValue),
              "text": .string(finding.text), "remedy": finding.remedy.map { .string($0) } ?? .null,
            ]
          })),
    ]
  }
}
