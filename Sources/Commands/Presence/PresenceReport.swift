import Encoding

/// What a way of finding the rider has found, for people, for programs and for the controller.
protocol PresenceReport {
  /// Nil when it is not enough to open a step.
  var presence: Presence? { get }
  /// Where the rider is, in a few words: `at the left step`
  var summary: String { get }
  /// What it rests on, a line each.
  var lines: [String] { get }
  /// What a rider may do about it when it is not enough.
  var advice: String { get }
  var json: JSON { get }
}
