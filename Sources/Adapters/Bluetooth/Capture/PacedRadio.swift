package import Domain
import Ranging
package import SystemIO

/// A recording that is played in its own time, or so many times faster: its events come when they came.
///
/// A gap of more than two seconds between two events, in either direction, is left out.
package final class PacedRadio: Radio {
  private let recording: any Radio
  private let speed: Double
  private let now: () -> Instant
  private let pause: (Instant) throws(RadioError) -> Void
  /// The last time to which it was played, on the recording's clock, and when that was.
  private var played: (clock: UnixTime, at: Instant)

  private static let longestGap = 2.0

  /// - Parameters:
  ///   - speed: greater than 0.
  ///   - interruption: ends every wait.
  package convenience init(_ recording: any Radio, speed: Double, _ interruption: Interruption?) {
    self.init(
      recording, speed: speed, now: { .now },
      pause: { time throws(RadioError) in
        _ = try waitReadable(-1, of: "the recording", until: time, interruption)
      })
  }

  /// - Parameters:
  ///   - speed: greater than 0.
  ///   - now: tells the time.
  ///   - pause: returns at that time.
  package init(
    _ recording: any Radio, speed: Double, now: @escaping () -> Instant,
    pause: @escaping (Instant) throws(RadioError) -> Void
  ) {
    self.recording = recording
    self.speed = speed
    self.now = now
    self.pause = pause
    played = (recording.start, now())
  }

  package var start: UnixTime { recording.start }

  package func next(until deadline: UnixTime?) throws(RadioError) -> RadioEvent {
    let event = try recording.next(until: deadline)
    switch event {
    case .heard(let advertisement): try wait(until: advertisement.time)
    // The recording may be much further on.
    case .deadline(let now): try wait(until: deadline ?? now)
    case .ended(let now): try wait(until: now)
    }
    return event
  }

  package func close() { recording.close() }

  private func wait(until time: UnixTime) throws(RadioError) {
    let gap = time.seconds(since: played.clock)
    guard (0...Self.longestGap).contains(gap) else {
      played = (time, now())
      return
    }
    // From the time when the last event was due, not from when it came: many small delays must not add up.
    played = (time, played.at + .nanoseconds(Int64(gap / speed * 1e9)))
    try pause(played.at)
  }
}
