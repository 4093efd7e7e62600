import Encoding

/// The side of the vehicle that a step is on, for a person who sits in it and looks forward.
public enum Side: String, Sendable, CaseIterable {
  case left, right
}

/// A step's target or state. A status may also say that the state is unknown (after an interrupted motion).
public enum Position: String, Sendable, CaseIterable {
  case open, close, unknown
}

/// Whether a text can be a word of the protocol: 1 to 64 of `a`–`z`, `0`–`9` and `_`.
public func isWord(_ text: String) -> Bool {
  (1...64).contains(text.utf8.count)
    && text.utf8.allSatisfy { $0.isASCIILowercase || $0.isASCIIDigit || $0 == UInt8(ascii: "_") }
}

/// A word from a list that later versions of the protocol may extend.
///
/// An unknown word is kept as text, so that it can be shown. Each type tells how readers treat it.
public protocol OpenWord: RawRepresentable, Hashable, Sendable where RawValue == String {
  /// The words of version 1.
  static var known: [Self] { get }
  /// A word that version 1 does not know; `init(rawValue:)` uses it for those only.
  static func other(_ word: String) -> Self
}

extension OpenWord {
  /// Nil for a text that cannot be a word.
  public init?(rawValue: String) {
    guard isWord(rawValue) else { return nil }
    self = Self.known.first { $0.rawValue == rawValue } ?? .other(rawValue)
  }
}

/// What a step is doing.
public enum Phase: OpenWord {
  case idle, moving, fault
  /// The step is not at rest: a program that waits for the end of a motion keeps waiting.
  case other(String)

  public static let known: [Phase] = [.idle, .moving, .fault]

  public var rawValue: String {
    switch self {
    case .idle: "idle"
    case .moving: "moving"
    case .fault: "fault"
    case .other(let word): word
    }
  }

  /// Whether the step stays as it is without a further command.
  public var isAtRest: Bool {
    switch self {
    case .idle, .fault: true
    case .moving, .other: false
    }
  }
}

/// What a vehicle's guard knows about the road beside a step.
public enum Watch: OpenWord {
  /// Nothing moves towards the step.
  case clear
  case approaching
  /// Something stands at the step.
  case obstructed
  /// Too little is known for any other answer.
  case blind
  case other(String)

  public static let known: [Watch] = [.clear, .approaching, .obstructed, .blind]

  public var rawValue: String {
    switch self {
    case .clear: "clear"
    case .approaching: "approaching"
    case .obstructed: "obstructed"
    case .blind: "blind"
    case .other(let word): word
    }
  }
}

/// How far away a beacon is: immediate is below 0.5 m, near is up to 3 m, far is beyond.
///
/// `unknown` means that there is no evidence, or too little to tell two zones apart.
public enum Zone: String, Sendable, CaseIterable, Comparable {
  case immediate, near, far, unknown

  private var rank: Int {
    switch self {
    case .immediate: 0
    case .near: 1
    case .far: 2
    case .unknown: 3
    }
  }

  /// The distance at which the zone ends, metres; nil if the zone has no end.
  public var end: Double? {
    switch self {
    case .immediate: 0.5
    case .near: 3
    case .far, .unknown: nil
    }
  }

  /// A nearer zone is less. Unknown is never within any zone.
  public static func < (a: Zone, b: Zone) -> Bool { a.rank < b.rank }
}

/// How presence at a step was detected.
public enum ProofMethod: String, Sendable, CaseIterable {
  case beacon, nfc, qr
  /// The vehicle's own adapters hear the rider's device.
  case heard
}

/// The name of a step in topics and files: 1 to 32 of `a`–`z`, `0`–`9`, `-` and `_`.
///
/// It becomes part of an MQTT topic, so it cannot contain characters that MQTT interprets (`/`, `+`, `#`, `$`).
public struct StepID: Hashable, Sendable, CustomStringConvertible {
  public let description: String

  /// - Returns: nil for a text in any other form.
  public init?(_ text: String) {
    let allowed = text.utf8.allSatisfy { $0.isASCIILowercase || $0.isASCIIDigit || "-_".utf8.contains($0) }
    guard allowed, (1...32).contains(text.utf8.count) else { return nil }
    description = text
  }
}

/// Microseconds since 1970-01-01T00:00:00Z: the time of a capture, a frame or a proof.
public struct UnixTime: Hashable, Comparable, Sendable {
  public var microseconds: Int64

  public init(microseconds: Int64) { self.microseconds = microseconds }

  public static func < (a: UnixTime, b: UnixTime) -> Bool { a.microseconds < b.microseconds }

  /// Seconds from `earlier` to this time; negative if a clock was set back.
  public func seconds(since earlier: UnixTime) -> Double {
    Double(microseconds &- earlier.microseconds) / 1e6
  }
}
