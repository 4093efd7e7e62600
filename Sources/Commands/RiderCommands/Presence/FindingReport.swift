import Bluetooth
import CommandParts
import Domain
import Encoding
import Ranging
import Rider
import SystemIO
import Terminal

/// The result of a search for the rider's step, for people and for programs.
struct FindingReport {
  let vehicle: Vehicle
  let finding: Finding
  /// The start of the search.
  let began: Instant

  /// Nil when the rider is not located.
  var sighting: Sighting? { if case .sighted(let sighting) = finding { sighting } else { nil } }

  /// The rider's place in a few words: `at the left step`
  var summary: String {
    switch finding {
    case .sighted(let sighting): "at the \(sighting.step.id) step"
    case .undecided(let location, _): LocationReport(vehicle: vehicle, location: location).summary
    }
  }

  /// The evidence, one line each.
  var lines: [String] {
    switch finding {
    case .undecided(let location, _): LocationReport(vehicle: vehicle, location: location).lines
    case .sighted(let sighting):
      switch sighting.evidence {
      case .beacons(let location): LocationReport(vehicle: vehicle, location: location).lines
      case .tag, .code, .vehicle: ["\(sighting.step.id.description.aligned(to: 8)) \(sighting.source)"]
      }
    }
  }

  var json: JSON {
    switch finding {
    case .undecided(let location, _): LocationReport(vehicle: vehicle, location: location).json
    case .sighted(let sighting):
      switch sighting.evidence {
      case .beacons(let location): LocationReport(vehicle: vehicle, location: location).json
      case .tag(let uid): json(of: sighting, [.init("uid", .string(uid.description))])
      case .code, .vehicle: json(of: sighting, [])
      }
    }
  }

  /// A tag or a code names its step, so it has no zone and no distance.
  private func json(of sighting: Sighting, _ members: [JSON.Member]) -> JSON {
    .object(
      [
        .init("elapsed_s", .rounded(began.duration(to: sighting.found).inSeconds, places: 3)),
        .init("vehicle", .string(vehicle.uuid.description)),
        .init("located", true),
        .init("step", .string(sighting.step.id.description)),
        .init("zone", .string(Zone.unknown.rawValue)),
        .init("distance_m", .null),
        .init("distance_low_m", .null),
        .init("distance_high_m", .null),
        .init("method", .string(sighting.method.rawValue)),
      ] + members + [.init("steps", .array([]))])
  }

  /// The error of a command that needs a sighting, with advice for the rider.
  func notLocated(_ advice: String) -> CommandFailure {
    CommandFailure(.notLocated, "not located: \(summary)", hint: advice)
  }

  /// Advice for a rider when the beacons are not conclusive.
  ///
  /// - Parameter side: the side that the rider asked for; nil for either.
  static func advice(
    _ vehicle: Vehicle, _ location: Location, _ radio: RadioSpec, to side: Side? = nil
  ) -> String {
    let report = LocationReport(vehicle: vehicle, location: location)
    if let shortage = report.shortage(with: radio) { return shortage }
    let advice = Advice(report, to: side)
    return (advice == .listen ? .findVehicle : advice).sentence(naming: printable(vehicle.name))
  }
}

extension Sighting {
  /// The evidence of a proof, for people: `at the left step: located, near, 0.9 m, 11 packets (beacon)`
  var summary: String {
    let place = "at the \(step.id) step"
    switch evidence {
    case .tag, .code, .vehicle: return "\(place): \(source) (\(method.rawValue))"
    case .beacons(let location):
      let reading = location.reading(of: step)
      // Zone and distance as measured. Being located is a separate decision.
      let zone = reading.map { $0.zone == .unknown ? "" : ", \($0.zone.rawValue)" } ?? ""
      let distance = reading?.distance.map { ", \(tenths($0.metres)) m" } ?? ""
      return "\(place): located\(zone)\(distance), \(reading?.packets ?? 0) packets (beacon)"
    }
  }

  fileprivate var source: String {
    switch evidence {
    case .tag(let uid): "tag \(uid)"
    case .code: "the code on it"
    case .vehicle: "the vehicle hears this device"
    case .beacons: "beacons"
    }
  }
}
