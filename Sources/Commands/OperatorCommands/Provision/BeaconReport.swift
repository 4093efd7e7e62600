import Domain
import Encoding
import FileFormats
import Ranging

/// The values that a step's beacon must send, for the person who programs it.
struct BeaconReport {
  /// Milliseconds between two frames. Apple requires this interval of an iBeacon, and ranging relies on it.
  private static let interval = 100

  let file: VehicleFile
  let step: Step
  let beacon: IBeacon

  /// - Parameters:
  ///   - minor: replaces the minor in the vehicle file.
  ///   - measuredPower: replaces the value in the vehicle file, dBm at 1 m.
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
