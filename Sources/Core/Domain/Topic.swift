import Encoding

/// The part of a vehicle's MQTT topics that all of them share: `arena2036/rolling_chassis`.
///
/// Levels of letters, digits, `.`, `-` and `_`, joined by `/`; at most 128 bytes. MQTT allows more, but then a
/// wildcard or a `$` from a file could reach where it should not (MQTT 3.1.1, 4.7).
public struct TopicPrefix: Hashable, Sendable, CustomStringConvertible {
  public let description: String

  /// - Returns: nil for a text that is not of this form.
  public init?(_ text: String) {
    guard (1...128).contains(text.utf8.count) else { return nil }
    for level in text.split(separator: "/", omittingEmptySubsequences: false) {
      let allowed = level.utf8.allSatisfy { $0.isASCIIAlphanumeric || ".-_".utf8.contains($0) }
      guard allowed, !level.isEmpty else { return nil }
    }
    description = text
  }

  /// Where a step's commands are published.
  public func setPosition(_ step: StepID) -> String { "\(self)/\(step)/set_position" }

  /// Where a step's statements are published.
  public func status(_ step: StepID) -> String { "\(self)/\(step)/status" }

  /// Where the broker keeps what the operator tells the controller: `Notice`.
  public var notice: String { "\(self)/operator" }

  /// Where the controller tells the operator what it did: `VehicleEvent`.
  public var events: String { "\(self)/events" }

  /// Where the broker keeps whether the controller is there: `Availability`.
  public var availability: String { "\(self)/availability" }
}

/// What is retained on `TopicPrefix.availability`. Nobody signs it: it is a courtesy of the broker's, and proves
/// nothing.
public enum Availability: String, Sendable, CaseIterable {
  /// The controller is connected.
  case online
  /// It has ended, or the broker has lost it.
  case offline

  /// What is published.
  public var payload: [UInt8] { Array(rawValue.utf8) }
}
