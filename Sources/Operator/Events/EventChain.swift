package import StepProtocol

/// The chain of a vehicle's stored events, and how a new event fits to it. A value, without I/O.
package struct EventChain: Sendable {
  /// What is wrong with a vehicle's events.
  package enum Finding: Sendable, Equatable {
    /// The vehicle says itself that it could not write these.
    case unwritten(ClosedRange<Int64>)
    /// The vehicle had to drop these, or somebody has kept them back.
    case missing(ClosedRange<Int64>)
    /// The events after the first number were told once more, with another content: the vehicle's files are older than
    /// what it had told, or somebody has its key.
    case wentBack(to: Int64, from: Int64)
    /// The vehicle began a new chain: its events were lost or replaced.
    case beganAgain(after: Int64)
  }

  package enum Fit: Sendable, Equatable {
    /// It is here already.
    case known
    /// It comes next.
    case follows([Finding])
    /// One before it is not here.
    case waits
  }

  /// The last event.
  package private(set) var end: EventPlace?
  private var known: [EventDigest: Int64] = [:]

  package init() {}

  package var count: Int { known.count }

  /// Takes note of an event that fits.
  package mutating func take(_ event: VehicleEvent, _ digest: EventDigest) -> Fit {
    if known[digest] != nil { return .known }
    guard let fit = findings(event) else { return .waits }
    note(event, digest)
    return .follows(fit)
  }

  /// Takes note of an event though one before it is not here.
  ///
  /// - Returns: what is wrong.
  package mutating func accept(_ event: VehicleEvent, _ digest: EventDigest) -> [Finding] {
    let last = end?.sequence ?? 0
    let findings =
      findings(event)
      ?? (event.sequence > last + 1
        ? [.missing(last + 1...event.sequence - 1)] : [.wentBack(to: event.sequence - 1, from: last)])
    note(event, digest)
    return findings
  }

  private mutating func note(_ event: VehicleEvent, _ digest: EventDigest) {
    known[digest] = event.sequence
    end = EventPlace(event.sequence, digest)
  }

  /// - Returns: nil where the event before it is not here.
  private func findings(_ event: VehicleEvent) -> [Finding]? {
    guard let before = known[event.previous] else {
      // The first of a chain.
      return event.sequence == 1 ? end.map { [.beganAgain(after: $0.sequence)] } ?? [] : nil
    }
    guard before < event.sequence, let end else { return nil }
    let skipped: [Finding] = event.sequence > before + 1 ? [.unwritten(before + 1...event.sequence - 1)] : []
    return event.previous == end.digest ? skipped : [.wentBack(to: before, from: end.sequence)] + skipped
  }
}
