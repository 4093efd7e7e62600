import Configuration
import Domain
import Encoding
import Ranging

/// What a beacon of a step is to send, for whoever programs it.
struct BeaconReport {
  /// Milliseconds between two frames: what Apple asks of an iBeacon, and what ranging counts on.
  private static let interval = 100

  let file: VehicleFile
  let step: Step
  let beacon: IBeacon

  /// - Parameters:
  ///   - minor: in place of the vehicle file's.
  ///   - measuredPower: in place of the vehicle file's, dBm at 1 m.
  init(_ file: VehicleFile, _ step: Step, minor: UInt16?, measuredPower: Int8?) {
    self.file = file
    self.step = step
    beacon = IBeacon(
      uuid: file.vehicle.uuid, major: step.major, minor: minor ?? step.minor ?? 1,
      measuredPower: measuredPower ?? step.measuredPower ?? IBeacon.usualMeasuredPower)
  }

  var lines: [String] {
    [
      "\(step.id):",
      "  UUID            \(beacon.uuid)",
      "  major           \(beacon.major)",
      "  minor           \(beacon.minor)",
      "  measured power  \(beacon.measuredPower) dBm at 1 m",
      "  interval        \(Self.interval) ms",
      "  bytes           \(hexadecimal(beacon.advertisingData))",
    ]
  }

  func json(isSaved: Bool) -> JSON {
    [
      "vehicle": .string(beacon.uuid.description), "step": .string(step.id.description),
      "uuid": .string(beacon.uuid.description), "major": .integer(Int64(beacon.major)),
      "minor": .integer(Int64(beacon.minor)), "measured_power_dbm": .integer(Int64(beacon.measuredPower)),
      "interval_ms": .integer(Int64(Self.interval)),
      "advertising_data": .string(hexadecimal(beacon.advertisingData)), "file": .string(file.path),
      "saved": .bool(isSaved),
    ]
  }
}
