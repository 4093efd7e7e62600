import Bluetooth
import Ranging
import Domain
import SystemIO

/// Listens with a radio and says at regular intervals, on the radio's clock, where the rider is.
struct Locating {
  let vehicle: Vehicle
  let radio: any Radio
  /// Seconds of the radio's clock between two decisions.
  var interval = 0.5

  /// A longer silence in a capture is passed over: its length is whatever the recording clock says, and could be years.
  private static let longestSilence = 60.0

  /// - Parameters:
  ///   - limit: seconds of the radio's clock; nil for as long as it has something to tell.
  ///   - body: gets each decision, and how many seconds of the radio's clock after its time it is made; false ends it.
  func run(limit: Double?, _ body: (Location, _ delay: Double) throws -> Bool) throws {
    var locator = Locator(steps: vehicle.steps)
    // What the radio's clock shows when no time has elapsed. A clock that jumps takes it along, so that the elapsed
    // time neither jumps nor runs back.
    var base = radio.start
    var newest = radio.start
    var lastHeard = 0.0
    var tick = 0
    // Whether something was heard, of whomever, since the last decision.
    var isUndecided = true

    while true {
      let elapsed = Double(tick) * interval
      if let limit, elapsed > limit { return }
      let deadline = UnixTime(microseconds: base.microseconds + Int64((elapsed * 1e6).rounded()))
      switch try radio.next(until: deadline) {
      case .heard(let advertisement):
        if newest.seconds(since: advertisement.time) > 1 {
          base.microseconds -= newest.microseconds - advertisement.time.microseconds
          // How old what was heard before is, nobody knows.
          locator = Locator(steps: vehicle.steps)
        }
        newest = advertisement.time
        isUndecided = true
        guard let beacon = advertisement.iBeacon, beacon.uuid == vehicle.uuid else { continue }
        lastHeard = newest.seconds(since: base)
        locator.hear(beacon, rssi: advertisement.rssi, at: lastHeard)
      case .deadline(let now):
        guard try body(locator.decide(at: elapsed), now.seconds(since: deadline)) else { return }
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
