/// How far another clock is ahead of this one, from the four stamps of a question and its answer (RFC 5905, 8).
///
/// Of the samples of the last minute the one with the shortest way there and back counts: where nothing waited in a
/// queue, the two ways are most alike.
public struct ClockOffset: Sendable {
  /// Seconds that the other clock is ahead, and how far that can be off: half the time of both ways.
  public struct Estimate: Equatable, Sendable {
    public let offset: Double
    public let uncertainty: Double

    public init(offset: Double, uncertainty: Double) {
      self.offset = offset
      self.uncertainty = uncertainty
    }

    /// For stamps of this clock.
    public static let none = Estimate(offset: 0, uncertainty: 0)
  }

  private var samples: [(time: Double, estimate: Estimate)] = []

  /// Seconds.
  public static let window = 60.0

  public init() {}

  /// Takes the stamps of a frame that came.
  ///
  /// - Parameter time: when it came, seconds since 1970 on this clock.
  public mutating func take(_ stamps: BridgeStamps, at time: Double) {
    guard let echo = stamps.echo, let echoReceived = stamps.echoReceived else { return }
    let both = (time - echo) - (stamps.sent - echoReceived)
    // Less than no time: a clock was set, or the bridge makes its stamps up.
    guard both >= 0, both < 10 else { return }
    let offset = ((echoReceived - echo) + (stamps.sent - time)) / 2
    samples.removeAll { abs(time - $0.time) > Self.window }
    // Two samples that differ by more than their uncertainties mean that a clock was set in between: drop the old one.
    samples.removeAll { abs($0.estimate.offset - offset) > $0.estimate.uncertainty + both / 2 + 0.001 }
    let estimate = Estimate(offset: offset, uncertainty: both / 2)
    // Older and worse than this one: it never counts again.
    samples.removeAll { $0.estimate.uncertainty >= estimate.uncertainty }
    samples.append((time, estimate))
  }

  /// Nil while nothing was measured.
  public var estimate: Estimate? { samples.min { $0.estimate.uncertainty < $1.estimate.uncertainty }?.estimate }
}
