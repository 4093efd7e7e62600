public import StepProtocol

/// The chain of a vehicle's stored events, and how a new event fits. A value without I/O.
public struct EventChain: Sendable {
  /// What is wrong with a vehicle's events.
  public enum Finding: Sendable, Equatable {
    /// The vehicle reports that it could not write these events.
    case unwritten(ClosedRange<Int64>)
    /// The vehicle had to drop these events, or somebody has withheld them.
    case missing(ClosedRange<Int64>)
    /// The events after the first number came again, with other content. Either the vehicle's files are older than the
    /// events that it had sent, or somebody has its key.
    case wentBack(to: Int64, from: Int64)
    /// The vehicle began a new chain: its events were lost or replaced.
    case beganAgain(after: Int64)
  }

  package enum Fit: Sendable, Equatable {
    /// The event is already stored.
    case known
    /// The event comes next.
    case follows([Finding])
    /// An event before it is not stored.
    case waits
  }

  /// The last event.
  package private(set) var end: EventPlace?
  private var known: [EventDigest: Int64] = [:]

  package init() {}

  package var count: Int { known.count }

  /// Adds an event if it fits.
  package mutating func take(_ event: VehicleEvent, _ digest: EventDigest) -> Fit {
    if known[digest] != nil { return .known }
    guard let fit = findings(event) else { return .waits }
    note(event, digest)
    return .follows(fit)
  }

  /// Adds an event although one before it is not stored.
  ///
  /// - Returns: what is wrong.
  package mutating func accept(_ event: VehicleEvent, _ digest: EventDigest) -> [Finding] {
    let findings = findings(event) ?? Self.gap(before: event, after: end)
    note(event, digest)
    return findings
  }

  private mutating func note(_ event: VehicleEvent, _ digest: EventDigest) {
    known[digest] = event.sequence
    end = EventPlace(event.sequence, digest)
  }

  private func findings(_ event: VehicleEvent) -> [Finding]? {
    Self.findings(event, follows: known[event.previous], after: end)
  }

  /// How an event fits to those that are stored.
  ///
  /// - Parameters:
  ///   - before: the number of the event that it names as the one before; nil if that is not stored.
  ///   - end: the last one.
  /// - Returns: what is wrong; nil if the event has to wait for the one before.
  public static func findings(_ event: VehicleEvent, follows before: Int64?, after end: EventPlace?) -> [Finding]? {
    guard let before else {
      // The first event of a chain.
      return event.sequence == 1 ? end.map { [.beganAgain(after: $0.sequence)] } ?? [] : nil
    }
    guard before < event.sequence, let end else { return nil }
    let skipped: [Finding] = event.sequence > before + 1 ? [.unwritten(before + 1...event.sequence - 1)] : []
    return event.previous == end.digest ? skipped : [.wentBack(to: before, from: end.sequence)] + skipped
  }

  /// What is wrong with an event whose predecessor does not come.
  public static func gap(before event: VehicleEvent, after end: EventPlace?) -> [Finding] {
    let last = end?.sequence ?? 0
    return event.sequence > last + 1
      ? [.missing(last + 1...event.sequence - 1)] : [.wentBack(to: event.sequence - 1, from: last)]
  }
}

extension EventChain.Finding {
  /// For people.
  public var text: String {
    switch self {
    case .unwritten(let range): "the vehicle could not keep \(Self.shown(range))"
    case .missing(let range): "no \(Self.shown(range)): dropped by the vehicle, or kept back"
    case .wentBack(let to, let from):
      "the vehicle sent other events after event \(to) than before; it had reached event \(from):"
        + " its files were put back, or somebody has its key"
    case .beganAgain(let last): "the vehicle begins again after event \(last): its events were lost or replaced"
    }
  }

  private static func shown(_ range: ClosedRange<Int64>) -> String {
    range.count == 1 ? "event \(range.lowerBound)" : "events \(range.lowerBound) to \(range.upperBound)"
  }
}
