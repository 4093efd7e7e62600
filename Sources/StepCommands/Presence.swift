import Bluetooth
import Ranging
import StepDomain
import SystemIO
import Terminal

/// The rider's presence at a step, found by one of several methods.
struct Presence {
  let report: LocationReport
  /// When the last frame that supports it was heard: now, less how old it was on the radio's clock.
  ///
  /// So a capture counts as if it had just been made. Nothing is lost by that: RSSI is the client's word either way.
  let heard: ContinuousClock.Instant

  /// Listens until the rider is located, or the time is up.
  ///
  /// - Parameter limit: seconds of the radio's clock.
  /// - Returns: the first decision that is enough to open a step, or else the last one.
  static func find(
    _ vehicle: Vehicle, _ radio: any Radio, limit: Double, progress: (LocationReport) -> Void = { _ in }
  ) throws -> Presence {
    var last: Presence?
    try Locating(vehicle: vehicle, radio: radio).run(limit: limit) { location in
      let report = LocationReport(vehicle: vehicle, location: location)
      let age = location.facing.flatMap(location.reading)?.age ?? 0
      last = Presence(report: report, heard: .now - .milliseconds(Int64(age * 1000)))
      progress(report)
      return !location.isLocated
    }
    // The first decision falls on the radio's first moment, so there is one even in an empty capture.
    guard let last else { throw CommandFailure(.notLocated, "the radio heard nothing") }
    return last
  }
}
