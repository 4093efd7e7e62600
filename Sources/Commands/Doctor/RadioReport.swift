import Bluetooth
import Domain
import Encoding
import Terminal

/// The findings about a radio, for people and for programs.
struct RadioReport {
  struct Finding {
    enum State: String {
      case good = "ok"
      /// It works, but there is something to know about it.
      case warning = "note"
      case bad = "wrong"
    }

    let subject: String
    let state: State
    let text: String
    /// The one line to type.
    var remedy: String?
  }

  /// How much was heard.
  struct Heard {
    let seconds: Double
    let advertisements: Int
    /// The advertisements that are beacons'.
    let frames: Int
    let beacons: Int
    /// RSSI readings a second of the beacon that has the most.
    let readingsPerSecond: Double
  }

  let radio: RadioSpec
  var findings: [Finding] = []
  var heard: Heard?
  /// Why it cannot be used.
  var failure: RadioError?

  func lines(style: (String, Console.Style) -> String) -> [String] {
    [style(radio.description, .strong)]
      + findings.flatMap { finding in
        let state = finding.state.rawValue.aligned(to: 5)
        let styled =
          switch finding.state {
          case .good: style(state, .good)
          case .warning: style(state, .strong)
          case .bad: style(state, .bad)
          }
        return ["  \(styled)  \(finding.subject.aligned(to: 10))  \(printable(finding.text))"]
          + (finding.remedy.map { ["         type:       \($0)"] } ?? [])
      }
  }

  var json: JSON {
    [
      "radio": .string(radio.description), "usable": .bool(failure == nil),
      "findings": .array(
        findings.map { finding in
          [
            "subject": .string(finding.subject), "state": .string(finding.state.rawValue),
            "text": .string(finding.text), "remedy": finding.remedy.map { .string($0) } ?? .null,
          ]
        }),
      "seconds": .rounded(heard?.seconds, places: 1),
      "advertisements": heard.map { .integer(Int64($0.advertisements)) } ?? .null,
      "frames": heard.map { .integer(Int64($0.frames)) } ?? .null,
      "beacons": heard.map { .integer(Int64($0.beacons)) } ?? .null,
      "readings_per_second": .rounded(heard?.readingsPerSecond, places: 1),
    ]
  }
}
