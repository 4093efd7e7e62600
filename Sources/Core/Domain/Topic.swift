import Encoding

/// The common beginning of a vehicle's MQTT topics: `arena2036/rolling_chassis`.
///
/// Levels of letters, digits, `.`, `-` and `_`, joined by `/`; at most 128 bytes. MQTT allows more, but then a wildcard
/// or a `$` from a file could reach other topics (MQTT 3.1.1, 4.7).
public struct TopicPrefix: Hashable, Sendable, CustomStringConvertible {
  public let description: String

  /// - Returns: nil for a text in any other form.
  public init?(_ text: String) {
    guard (1...128).contains(text.utf8.count) else { return nil }
    for level in text.split(separator: "/", omittingEmptySubsequences: false) {
      let allowed = level.utf8.allSatisfy { $0.isASCIIAlphanumeric || ".-_".utf8.contains($0) }
      guard allowed, !level.isEmpty else { return nil }
    }
    description = text
  }

  /// The topic for a step's commands.
  public func setPosition(_ step: StepID) -> String { "\(self)/\(step)/set_position" }

  /// The topic for a step's statements.
  public func status(_ step: StepID) -> String { "\(self)/\(step)/status" }

  /// The topic on which the broker retains the operator's `Notice`.
  public var notice: String { "\(self)/operator" }

  /// The topic on which the controller reports its actions to the operator: `VehicleEvent`.
  public var events: String { "\(self)/events" }

  /// The topic on which the broker retains the controller's `Availability`.
  public var availability: String { "\(self)/availability" }
}

/// The retained message on `TopicPrefix.availability`. It is not signed and proves nothing: it is only a convenience.
public enum Availability: String, Sendable, CaseIterable {
  /// The controller is connected.
  case online
  /// The controller has ended, or has lost its connection to the broker.
  case offline

  /// The payload to publish.
  public var payload: [UInt8] { Array(rawValue.utf8) }
}
