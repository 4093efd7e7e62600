import Bluetooth
import Domain
import Encoding
import Ranging
import Terminal

/// A decision of the locator, for people and for programs.
struct LocationReport: PresenceReport {
  let vehicle: Vehicle
  let location: Location
  /// When it was made, on this machine's clock.
  var made = ContinuousClock.now
  /// What it was heard with, for the advice.
  var radio: RadioSpec?

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

  /// One line that says it all, for a list of them; the step that is faced is marked.
  var line: String {
    let steps = location.readings.map { reading in
      "\(mark(of: reading))\(reading.step.id.description.aligned(to: 5)) \(Self.columns(reading))"
    }
    return "\("\(tenths(location.time)) s".aligned(to: 7)) \(steps.joined(separator: " ")) \(summary)"
  }

  func mark(of reading: Location.Reading) -> Character {
    reading.step != location.facing ? " " : location.isLocated ? "*" : "~"
  }

  /// A line for each step, with what it rests on.
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

  /// What it means for the rider.
  var summary: String {
    guard let facing = location.facing else { return "undecided" }
    return location.isLocated ? "at the \(facing.id) step" : "towards the \(facing.id) step"
  }

  /// What a rider may do about it when it is not enough and nothing more is listened to.
  var advice: String {
    if let shortage { return shortage }
    let advice = Advice(self)
    return (advice == .listen ? .findVehicle : advice).sentence(naming: printable(vehicle.name))
  }

  /// A capture counts as if it had just been made: how old a frame was is told by the radio's clock. Nothing is lost by
  /// that, because RSSI is the client's word either way.
  var presence: Presence? {
    guard location.isLocated, let faced else { return nil }
    let proof = Proof.beacon(
      zone: faced.zone, isLocated: location.isLocated,
      beacons: location.readings.compactMap { reading in
        guard let minor = reading.minor, let power = reading.measuredPower, let rssi = reading.rssi else { return nil }
        return HeardBeacon(
          major: reading.step.major, minor: minor, rssi: rssi, measuredPower: Int(power),
          packets: reading.packets)
      })
    let distance = faced.distance.map { ", \(tenths($0.metres)) m" } ?? ""
    return Presence(
      step: faced.step, proof: proof, found: made - .milliseconds(Int64((faced.age ?? 0) * 1000)),
      evidence: "\(summary): located, \(faced.zone.column)\(distance), \(faced.packets) packets (beacon)")
  }
}
