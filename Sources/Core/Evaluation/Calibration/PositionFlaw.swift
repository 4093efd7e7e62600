public import Domain

/// What is wrong with the recording of a position.
public enum PositionFlaw: Hashable, Sendable, CustomStringConvertible {
  case fewPackets(Int)
  /// Another step's beacon is stronger by this many decibels.
  case otherStep(StepID, by: Double)
  /// The second half is stronger than the first by this many decibels.
  case drift(Double)
  /// Decibels between the quartiles.
  case spread(Double)
  /// Another step's beacon was not heard at all.
  case silent(StepID)

  /// Whether the recording must not be used. Other flaws only call for a look: vehicles hide beacons, and rooms
  /// reflect.
  public var isFatal: Bool {
    switch self {
    case .fewPackets, .otherStep, .drift: true
    case .spread, .silent: false
    }
  }

  public var description: String {
    switch self {
    case .fewPackets(0): "its beacon was not heard"
    case .fewPackets(let count): "only \(count) packets were heard, of at least \(PositionRecording.leastPackets)"
    case .otherStep(let id, let difference):
      "the \(id) step is stronger by \(Self.decibels(difference)): is this its side?"
    case .drift(let drift): "the level changed by \(Self.decibels(drift)): was the device held still?"
    case .spread(let spread): "the level scatters by \(Self.decibels(spread)): is someone moving nearby?"
    case .silent(let id): "the \(id) step's beacon was not heard: is it on?"
    }
  }

  private static func decibels(_ value: Double) -> String { "\(Int(value.rounded())) dB" }
}
