package import Bluetooth
package import Domain
package import Ranging
package import SystemIO

/// Listens with a radio, and decides at regular intervals, on the radio's clock, where the rider is.
package struct BeaconSearch: StepSearch {
  let vehicle: Vehicle
  let radio: RadioSpec
  /// Seconds of the radio's clock between two decisions.
  let interval: Double
  /// Seconds of the radio's clock; nil for as long as the radio has something to tell.
  let limit: Double?
  /// Whether it goes on beyond the limit while the rider is located: see `end`.
  let goesOnAtStep: Bool
  /// The path of a new file that keeps what is heard.
  let recording: String?
  /// Gets what the radio hears, byte by byte; nil where nobody wants that.
  let trace: Trace?

  package let method = ProofMethod.beacon

  /// A longer silence in a capture is passed over: its length is whatever the recording clock says, and could be years.
  private static let longestSilence = 60.0
  /// How many seconds late a decision of a live radio may come.
  private static let mostDelay = 1.0

  package init(
    _ vehicle: Vehicle, radio: RadioSpec, limit: Double?, goesOnAtStep: Bool = false, interval: Double = 0.5,
    recording: String? = nil, trace: Trace? = nil
  ) {
    self.vehicle = vehicle
    self.radio = radio
    self.interval = interval
    self.limit = limit
    self.goesOnAtStep = goesOnAtStep
    self.recording = recording
    self.trace = trace
  }

  /// When a search that goes on at a step ends. A rider who is located has arrived, and the zone can take as long as
  /// its window to show how near that is.
  package static func end(of limit: Double, _ location: Location) -> Double {
    location.isLocated ? limit + RangingModel.zoneWindow : limit
  }

  /// Listens until the time is up, and tells each decision.
  package func find(until interruption: Interruption, tell: (SearchEvent) -> Void) throws -> Finding {
    var last = Location(of: vehicle.steps, at: 0)
    try withoutActuallyEscaping(tell) { tell in
      try follow(interruption, tell: { tell(.note($0)) }) { location, delay in
        // A program that was stopped decides late: that is where the rider was.
        let isLate = !radio.isCapture && delay > Self.mostDelay
        last = isLate ? Location(of: vehicle.steps, at: location.time) : location
        tell(.decided(last, Sighting(last, made: .now)))
        // A capture is replayed without a wait that could be interrupted.
        return !interruption.isPending
      }
    }
    return .undecided(last, radio)
  }

  /// Gives every decision to `body`, until the radio, the limit or `body` ends it.
  ///
  /// - Parameters:
  ///   - tell: gets what the user should know of the radio.
  ///   - body: gets each decision, and how many seconds of the radio's clock after its time it is made; false ends it.
  package func follow(
    _ interruption: Interruption, tell: @escaping (String) -> Void,
    _ body: (Location, _ delay: Double) throws -> Bool
  ) throws {
    let opened = try radio.open(interruption: interruption, tell: tell, trace: trace)
    let radio = try recording.map { path throws(RadioError) in try RecordingRadio(opened, to: path) } ?? opened
    defer { radio.close() }
    var locator = Locator(steps: vehicle.steps)
    // What the radio's clock shows when no time has elapsed. A clock that jumps takes it along, so the elapsed time
    // neither jumps nor runs back.
    var base = radio.start
    var newest = radio.start
    var lastHeard = 0.0
    var tick = 0
    // Whether anything was heard, of any device, since the last decision.
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
          // Nobody knows how old the frames are that were heard before.
          locator = Locator(steps: vehicle.steps)
        }
        newest = advertisement.time
        isUndecided = true
        guard let beacon = advertisement.iBeacon, beacon.uuid == vehicle.uuid else { continue }
        lastHeard = newest.seconds(since: base)
        locator.hear(beacon, rssi: advertisement.rssi, at: lastHeard)
      case .deadline(let now):
        last = locator.decide(at: elapsed)
        guard try body(last, now.seconds(since: deadline)) else { return }
        tick += 1
        isUndecided = false
        if elapsed - lastHeard > Self.longestSilence, now.seconds(since: deadline) > Self.longestSilence {
          base.microseconds += now.microseconds - deadline.microseconds
        }
      case .ended(let now):
        // A recording goes on to the last decision that was made of it, which is not made twice.
        guard isUndecided else { return }
        _ = try body(locator.decide(at: max(elapsed - interval, now.seconds(since: base))), 0)
        return
      }
    }
  }
}

extension RadioSpec {
  package var isCapture: Bool { if case .btsnoop = self { true } else { false } }
}
