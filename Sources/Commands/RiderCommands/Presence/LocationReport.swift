import Bluetooth
import CommandParts
import Domain
import Encoding
import Ranging
import Terminal

/// A decision of the locator, for people and for programs.
struct LocationReport {
  let vehicle: Vehicle
  let location: Location

  private var faced: Location.Reading? { location.facing.flatMap(location.reading) }

  var json: JSON {
    [
      "elapsed_s": .rounded(location.time, places: 3),
      "vehicle": .string(vehicle.uuid.description),
      "located": .bool(location.isLocated),
      "step": location.facing.map { .string($0.id.description) } ?? .null,
      "zone": .string((faced?.zone ?? .unknown).rawValue),
      "distance_m": .rounded(faced?.distance?.metres, places: 2),
      "distance_low_m": .rounded(faced?.distance?.low, places: 2),
      "distance_high_m": .rounded(faced?.distance?.high, places: 2),
      "method": .string(ProofMethod.beacon.rawValue),
      "steps": .array(
        location.readings.map { reading in
          [
            "step": .string(reading.step.id.description),
            "zone": .string(reading.zone.rawValue),
            "distance_m": .rounded(reading.distance?.metres, places: 2),
            "distance_low_m": .rounded(reading.distance?.low, places: 2),
            "distance_high_m": .rounded(reading.distance?.high, places: 2),
            "rssi_dbm": reading.rssi.map { .integer(Int64($0)) } ?? .null,
            "packets": .integer(Int64(reading.packets)),
            "age_s": .rounded(reading.age, places: 2),
          ]
        }),
    ]
  }

  /// The whole decision in one line, for a list of decisions. The step that the rider faces is marked.
  var line: String {
    let steps = location.readings.map { reading in
      "\(mark(of: reading))\(reading.step.id.description.aligned(to: 5)) \(Self.columns(reading))"
    }
    return "\("\(tenths(location.time)) s".aligned(to: 7)) \(steps.joined(separator: " ")) \(summary)"
  }

  func mark(of reading: Location.Reading) -> Character {
    reading.step != location.facing ? " " : location.isLocated ? "*" : "~"
  }

  /// A line for each step, with the evidence.
  var lines: [String] {
    location.readings.map { reading in
      let rssi = reading.rssi.map { "\($0) dBm" } ?? "-"
      let age = reading.age.map { ", last \(tenths($0)) s ago" } ?? ""
      return """
        \(reading.step.id.description.aligned(to: 8)) \(Self.columns(reading)) \(rssi.aligned(to: 8)) \
        \(reading.packets) packets\(age)
        """
    }
  }

  private static func columns(_ reading: Location.Reading) -> String {
    let distance = reading.distance.map { "\(tenths($0.metres)) m" } ?? "-"
    return "\(reading.zone.column.aligned(to: 9)) \(distance.aligned(to: 7))"
  }

  /// What the decision means for the rider.
  var summary: String {
    guard let facing = location.facing else { return "cannot tell yet which step you are at" }
    return location.isLocated ? "at the \(facing.id) step" : "towards the \(facing.id) step"
  }

  /// Says that there were too few readings for a decision, if bluetoothd is the cause.
  ///
  /// bluetoothd makes the adapter report each device once a scan. While another program keeps bluetoothd scanning, no
  /// new scan begins for us. Then there is about one reading in 10 s.
  func shortage(with radio: RadioSpec) -> String? {
    guard case .bluez = radio, location.readings.contains(where: { $0.age != nil }) else { return nil }
    let packets = location.readings.map(\.packets).max() ?? 0
    let rate = Double(packets) / min(max(location.time, 1), RangingModel.window)
    guard rate < RangingModel.leastRate else { return nil }
    return """
      bluetoothd passes on \(tenths(rate)) readings a second, too few to decide by, while another program has it scan: \
      end that program, or use --radio hciN
      """
  }
}
