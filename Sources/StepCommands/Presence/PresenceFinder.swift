import Bluetooth
import Configuration
import Ranging
import StepDomain
import SystemIO

/// Finds out at which step the rider is, by the way that was chosen.
struct PresenceFinder {
  let vehicle: Vehicle
  let settings: Settings
  let saving: SaveOptions?
  let interruption: Interruption

  /// Listens until the rider is located, or the time is up.
  ///
  /// - Returns: the first decision that is enough to open a step, or else the last one.
  func find() throws -> any PresenceReport {
    let spec = try settings.radioSpec()
    let opened = try spec.open(interruption: interruption)
    let radio = try saving?.recorded(opened) ?? opened
    defer { radio.close() }
    var last: LocationReport?
    try Locating(vehicle: vehicle, radio: radio).run(limit: settings.timeout.value) { location in
      last = LocationReport(vehicle: vehicle, location: location)
      return !location.isLocated
    }
    // The first decision falls on the radio's first moment, so there is one even in an empty capture.
    return last!
  }
}
