/// How far another clock is ahead of this one, from the four stamps of a request and its response (RFC 5905, 8).
///
/// The sample of the last minute with the shortest round trip counts: without waiting in queues, the two ways are most
/// alike.
public struct ClockOffset: Sendable {
  /// How many seconds the other clock is ahead, and how far this can be off: half the round trip.
  public struct Estimate: Equatable, Sendable {
    public let offset: Double
    public let uncertainty: Double

    public init(offset: Double, uncertainty: Double) {
      self.offset = offset
      self.uncertainty = uncertainty
    }

    /// For stamps of this computer's own clock.
    public static let none = Estimate(offset: 0, uncertainty: 0)
  }

  private var samples: [(time: Double, estimate: Estimate)] = []

  /// How long a sample counts, seconds.
  public static let window = 60.0

  public init() {}

  /// Records the stamps of a frame.
  ///
  /// - Parameter time: when the frame arrived, seconds since 1970 on this clock.
  public mutating func take(_ stamps: BridgeStamps, at time: Double) {
    guard let echo = stamps.echo, let echoReceived = stamps.echoReceived else { return }
    let both = (time - echo) - (stamps.sent - echoReceived)
    // A negative round trip: a clock was set, or the bridge invents its stamps.
    guard both >= 0, both < 10 else { return }
    let offset = ((echoReceived - echo) + (stamps.sent - time)) / 2
    samples.removeAll { abs(time - $0.time) > Self.window }
    // If two samples differ by more than their uncertainties, a clock was set in between, so the old sample is dropped.
    samples.removeAll { abs($0.estimate.offset - offset) > $0.estimate.uncertainty + both / 2 + 0.001 }
    let estimate = Estimate(offset: offset, uncertainty: both / 2)
    // An older and less certain sample can never count again.
    samples.removeAll { $0.estimate.uncertainty >= estimate.uncertainty }
    samples.append((time, estimate))
  }

  /// Nil until there is a measurement.
  public var estimate: Estimate? { samples.min { $0.estimate.uncertainty < $1.estimate.uncertainty }?.estimate }
}
