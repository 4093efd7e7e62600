package import Bluetooth
package import Domain
package import Ranging
package import SystemIO

/// Listens with a radio, and decides at regular intervals, by the radio's clock, where the rider is.
package struct BeaconSearch: StepSearch {
  let vehicle: Vehicle
  let radio: RadioSpec
  /// Seconds of the radio's clock between two decisions.
  let interval: Double
  /// Seconds of the radio's clock; nil to listen until the radio ends.
  let limit: Double?
  /// Whether it continues beyond the limit while the rider is located: see `end`.
  let goesOnAtStep: Bool
  /// How many times faster than its own time a recording is played; nil for as fast as it can be read.
  let speed: Double?
  /// The path of a new file that records what is heard.
  let recording: String?
  /// Gets what the radio hears, byte by byte; nil if it is not wanted.
  let trace: Trace?

  package let method = ProofMethod.beacon

  /// A longer silence in a capture is skipped: its length depends on the recording clock, and could be years.
  private static let longestSilence = 60.0
  /// How late a decision of a live radio may be, seconds.
  private static let mostDelay = 1.0

  package init(
    _ vehicle: Vehicle, radio: RadioSpec, limit: Double?, goesOnAtStep: Bool = false, interval: Double = 0.5,
    speed: Double? = nil, recording: String? = nil, trace: Trace? = nil
  ) {
    self.vehicle = vehicle
    self.radio = radio
    self.interval = interval
    self.limit = limit
    self.goesOnAtStep = goesOnAtStep
    // A program that writes to a pipe sets the pace.
    self.speed = radio.isReplay ? speed : nil
    self.recording = recording
    self.trace = trace
  }

  /// When a search that continues at a step ends. A located rider has arrived, and the zone may need its whole window
  /// to show how near the rider is.
  package static func end(of limit: Double, _ location: Location) -> Double {
    location.isLocated ? limit + RangingModel.zoneWindow : limit
  }

  /// Listens until the time is up, and reports each decision.
  package func find(until interruption: Interruption, tell: @escaping (SearchEvent) -> Void) throws -> Finding {
    var last = Location(of: vehicle.steps, at: 0)
    var lastDecision: Instant?
    func note(_ text: String) { tell(.note(text)) }
    try follow(interruption, tell: note) { location, delay in
      let now = Instant.now
      // A suspended program decides late: the decision then shows where the rider was before. The delay does not show
      // a program that was suspended after the radio's clock was read.
      let sinceLast = lastDecision.map { $0.duration(to: now) } ?? .zero
      let isLate = delay > Self.mostDelay || sinceLast > .seconds(interval + Self.mostDelay)
      lastDecision = now
      last = isLate && !radio.isCapture ? Location(of: vehicle.steps, at: location.time) : location
      tell(.decided(last, Sighting(last, made: now)))
      // A capture is replayed without waits, so nothing else notices an interruption.
      return !interruption.isPending
    }
    return .undecided(last, radio)
  }

  /// Passes every decision to `body`, until the radio, the limit or `body` ends it.
  ///
  /// - Parameters:
  ///   - tell: gets what the user should know about the radio.
  ///   - body: gets each decision and its delay in seconds of the radio's clock; returns false to end.
  package func follow(
    _ interruption: Interruption, tell: @escaping (String) -> Void,
    _ body: (Location, _ delay: Double) throws -> Bool
  ) throws {
    let opened = try radio.open(interruption: interruption, tell: tell, trace: trace)
    let played = speed.map { PacedRadio(opened, speed: $0, interruption) } ?? opened
    let radio = try recording.map { path throws(RadioError) in try RecordingRadio(played, to: path) } ?? played
    defer { radio.close() }
    var locator = Locator(steps: vehicle.steps)
    // The reading of the radio's clock at elapsed time zero. A jump of the clock moves it too, so the elapsed time
    // neither jumps nor runs backwards.
    var base = radio.start
    var newest = radio.start
    var lastHeard = 0.0
    var tick = 0
    // Whether any device was heard since the last decision.
    var isUndecided = true
    var last = Location(of: vehicle.steps, at: 0)

    while true {
      let elapsed = Double(tick) * interval
      if let limit, elapsed > (goesOnAtStep ? Self.end(of: limit, last) : limit) { return }
      let deadline = UnixTime(microseconds: base.microseconds + Int64((elapsed * 1e6).rounded()))
      switch try radio.next(until: deadline) {
      case .heard(let advertisement):
        if newest.seconds(since: advertisement.time) > 1 {
          base.microseconds -= newest.microseconds - advertisement.time.microseconds
          // The age of the frames that were heard before is unknown.
          locator = Locator(steps: vehicle.steps)
        }
        newest = advertisement.time
        isUndecided = true
        for beacon in advertisement.iBeacons where beacon.uuid == vehicle.uuid {
          lastHeard = newest.seconds(since: base)
          locator.hear(beacon, from: advertisement.address, rssi: advertisement.rssi, at: lastHeard)
        }
      case .deadline(let now):
        last = locator.decide(at: elapsed)
        guard try body(last, now.seconds(since: deadline)) else { return }
        tick += 1
        isUndecided = false
        if elapsed - lastHeard > Self.longestSilence, now.seconds(since: deadline) > Self.longestSilence {
          base.microseconds += now.microseconds - deadline.microseconds
        }
      case .ended(let now):
        // A recording goes on to its own last decision, which is not made twice.
        guard isUndecided else { return }
        // A recording whose clock only goes back ends before its own beginning.
        _ = try body(locator.decide(at: max(elapsed - interval, now.seconds(since: base), 0)), 0)
        return
      }
    }
  }
}
