package import Domain
import Encoding

/// How one attempt to open a step ended: a line of `stepctl open --json`.
package struct Opening: Sendable {
  /// The method that found the rider; nil if several methods were tried and none found the rider.
  package let method: ProofMethod?
  /// The command's duration, seconds; nil if it ended before it could look for the rider.
  package let duration: Double?
  /// The word of `ExitStatus`; nil if the step opened.
  package let failure: String?

  /// - Returns: nil for a line that says that the step waits for the road: the outcome comes in a later line.
  /// - Throws: what was expected, in words.
  package init?(parsing line: [UInt8]) throws(Flaw) {
    guard let record = try? JSON(parsing: line), record.object != nil else { throw Flaw(expected: "an object of JSON") }
    if record["outcome"] == nil, record["waiting"]?.string != nil { return nil }
    guard let outcome = record["outcome"]?.string else { throw Flaw(expected: "the member \"outcome\"") }
    switch record["method"] {
    case nil, .null: method = nil
    case .some(let value):
      guard let known = value.string.flatMap(ProofMethod.init) else {
        throw Flaw(expected: "method: beacon, nfc, qr, heard or null")
      }
      method = known
    }
    switch record["duration_s"] {
    case .integer(let value) where value >= 0: duration = Double(value)
    case .number(let value) where value >= 0 && value.isFinite: duration = value
    case nil where outcome != "done": duration = nil
    default: throw Flaw(expected: "duration_s: seconds")
    }
    if outcome == "done" {
      guard record["position"] == "open" else { throw Flaw(expected: "an outcome of `stepctl open`: position: open") }
      guard method != nil else { throw Flaw(expected: "the member \"method\"") }
      failure = nil
    } else {
      guard let code = record["code"]?.string, ExitStatus.allCases.contains(where: { $0.word == code }), code != "done"
      else { throw Flaw(expected: "code: a word for an exit status") }
      failure = code
    }
  }

  /// The line is not an outcome of `stepctl open --json`.
  package struct Flaw: Error, Equatable {
    package let expected: String
  }
}

/// The outcomes of the attempts with one method.
package struct OpeningStatistics: Sendable {
  /// Nil for attempts with several methods, none of which found the rider.
  package let method: ProofMethod?
  /// Times to open, ascending, seconds.
  package let times: [Double]
  /// Each code with its number of failures.
  package let failures: [(code: String, count: Int)]
  /// The median time until an attempt failed, seconds.
  package let failedAfter: Double?

  package var count: Int { times.count + failures.reduce(0) { $0 + $1.count } }

  /// The share of attempts that opened a step. There is at least one attempt, because `each(of:)` makes no empty group.
  package var success: Share { Share(times.count, of: count, independent: count)! }

  init(_ method: ProofMethod?, _ openings: [Opening]) {
    self.method = method
    times = openings.filter { $0.failure == nil }.compactMap(\.duration).sorted()
    var counts: [String: Int] = [:]
    for failure in openings.compactMap(\.failure) { counts[failure, default: 0] += 1 }
    failures = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { ($0.key, $0.value) }
    failedAfter = openings.filter { $0.failure != nil }.compactMap(\.duration).sorted().quantile(0.5)
  }

  /// The statistics for each method that occurs, in the order of `ProofMethod`.
  package static func each(of openings: [Opening]) -> [OpeningStatistics] {
    (ProofMethod.allCases + [nil]).compactMap { method in
      let meant = openings.filter { $0.method == method }
      return meant.isEmpty ? nil : OpeningStatistics(method, meant)
    }
  }
}
