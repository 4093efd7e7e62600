import Domain
import Terminal
import Testing

@testable import CommandParts
@testable import Ranging
@testable import RiderCommands

/// A decision as the locator could have come to it.
func report(
  name: String = "Rolling Chassis", at time: Double = 12.5, facing: Side? = nil, for facedFor: Double = 1,
  isLocated: Bool = false, missing: Location.Missing = .undecidedSide,
  _ readings: Location.Reading...
) throws -> LocationReport {
  let vehicle = try Vehicle(
    name: name, uuid: #require(UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")), steps: readings.map(\.step))
  return LocationReport(
    vehicle: vehicle,
    location: Location(
      time: time, readings: readings, facing: facing.flatMap(vehicle.step(at:)), facedFor: facedFor,
      missing: isLocated ? nil : missing))
}

/// The beacon of a step, heard at a distance or, without one, not at all.
func reading(
  _ side: Side, id: String? = nil, _ metres: Double? = nil, _ zone: Zone = .unknown, rssi: Int = -60, packets: Int = 40,
  age: Double = 0.1, isContested: Bool = false, isUnlevelled: Bool = false
) throws -> Location.Reading {
  let step = try Step(id: #require(StepID(id ?? side.rawValue)), side: side, major: side == .left ? 1 : 2)
  guard let metres else {
    return Location.Reading(
      step: step, zone: zone, distance: nil, rssi: nil, packets: 0, age: nil, minor: nil, measuredPower: nil,
      isContested: false, isUnlevelled: isUnlevelled)
  }
  return Location.Reading(
    step: step, zone: zone, distance: Location.Distance(metres: metres, low: metres / 2.6, high: metres * 2.6),
    rssi: rssi, packets: packets, age: age, minor: 1, measuredPower: -59, isContested: isContested,
    isUnlevelled: isUnlevelled)
}

/// The frame of a decision, with its spaces, as text.
func frame(
  _ report: LocationReport, to side: Side? = nil, steps: DrawnSteps? = nil, news: String? = nil,
  keys: ApproachFrame.Keys? = nil, rows: Int, columns: Int, _ glyphs: Glyphs = .unicode
) -> [String] {
  ApproachFrame(
    report, to: side, steps: steps, news: news, keys: keys, size: Screen.Size(rows: rows, columns: columns),
    glyphs: glyphs
  ) { text, _ in text }.lines
}

/// How the two steps stand.
func steps(_ left: StepState, _ right: StepState, moment: Int = 0) throws -> DrawnSteps {
  let ids = try (#require(StepID("left")), #require(StepID("right")))
  return DrawnSteps(states: [ids.0: left, ids.1: right], moment: moment)
}
