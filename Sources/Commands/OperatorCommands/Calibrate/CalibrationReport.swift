import CommandParts
import Domain
import Encoding
import Evaluation
import FileFormats
import Operator
import Ranging
import SystemIO
import Terminal

/// The measurement of a vehicle's steps, for people, for programs and for the vehicle file.
struct CalibrationReport {
  let vehicle: Vehicle
  /// The vehicle file.
  let path: String
  let calibrations: [StepCalibration]
  private(set) var isWritten = false

  init(vehicle: Vehicle, path: String, calibrations: [StepCalibration]) {
    self.vehicle = vehicle
    self.path = path
    self.calibrations = calibrations
  }

  /// The steps whose power differs from the current value.
  var changes: [StepCalibration] { calibrations.filter { $0.measuredPower != $0.previousPower } }

  var isWorse: Bool { changes.contains(where: \.isWorse) }

  /// Checks that the file can be edited, before anybody walks about.
  ///
  /// - Throws: `ConfigurationError` with the reason.
  static func checkEditing(_ steps: [Step], in path: String) throws {
    let text = try Files.read(path)
    for step in steps {
      // The longest text.
      let other: Int8 = step.measuredPower == -128 ? -127 : -128
      _ = try VehicleFile.setting(measuredPower: other, of: step.id, in: text, path: path)
    }
  }

  /// Writes the changes into the vehicle file, which may have changed meanwhile.
  mutating func write() throws {
    try Files.edit(path) { text in
      try changes.reduce(text) { text, change in
        try VehicleFile.setting(measuredPower: change.measuredPower, of: change.step.id, in: text, path: path)
      }
    }
    isWritten = true
  }

  // MARK: - For people

  var lines: [String] {
    calibrations.flatMap { calibration in
      let origin = calibration.step.measuredPower == nil ? "as the beacon says" : "as the vehicle file says"
      let previous = calibration.previousPower
      let change = calibration.measuredPower == previous ? origin : "not \(previous) \(origin)"
      let title = "\(calibration.step.id): \(calibration.measuredPower) dBm at 1 m, \(change)"
      let positions = zip(calibration.recordings, calibration.residuals).map { recording, residual in
        "  \(recording.position.title.aligned(to: 18)) \(Self.columns(recording)), \(Self.signed(residual)) dB off"
      }
      let zones =
        calibration.measuredPower == previous
        ? "  correct zone \(Self.percent(calibration.before))"
        : """
          correct zone \(Self.percent(calibration.after)) (was \(Self.percent(calibration.before))), \
        each position judged by the others
        """
      return [title] + positions + [zones]
    }
  }

  /// How good the result is, a line for each step. It comes last, where people look.
  var summary: [String] {
    calibrations.map { calibration in
      let (after, before) = (Self.percent(calibration.after), Self.percent(calibration.before))
      // The values that are fitted to some of the positions may differ from a value that stays: they say nothing of it.
      guard calibration.measuredPower != calibration.previousPower else {
        return "\(calibration.step.id): correct zone \(before), unchanged"
      }
      return "\(calibration.step.id): correct zone \(after) (\(isWritten ? "was" : "now") \(before))"
        + (isWritten ? "" : ", not written")
    }
  }

  var question: String {
    let values = changes.map { "\($0.step.id) \($0.measuredPower) dBm" }.joined(separator: ", ")
    let warning = isWorse ? "; the correct zone would be found less often" : ""
    return "write \(values) into \(path)\(warning)? (n or s: not now, q: quit)"
  }

  /// `93 packets, -51 dBm, spread 4 dB`
  static func columns(_ recording: PositionRecording) -> String {
    guard let rssi = recording.rssi, let spread = recording.spread else { return "nothing heard" }
    return "\(recording.packets) packets, \(tenths(rssi)) dBm, spread \(Int(spread)) dB"
  }

  private static func signed(_ value: Double) -> String { value < 0 ? tenths(value) : "+\(tenths(value))" }

  private static func percent(_ count: ZoneCount) -> String {
    count.share.map { "\(Int(($0 * 100).rounded())) %" } ?? "-"
  }

  // MARK: - For programs

  var json: JSON {
    [
      "vehicle": .string(vehicle.uuid.description), "file": .string(path), "written": .bool(isWritten),
      "steps": .array(
        calibrations.map { calibration in
          [
            "step": .string(calibration.step.id.description),
            "measured_power_dbm": .integer(Int64(calibration.measuredPower)),
            "previous_power_dbm": .integer(Int64(calibration.previousPower)),
            "right_zone": .rounded(calibration.after.share, places: 3),
            "right_zone_before": .rounded(calibration.before.share, places: 3),
            "positions": .array(zip(calibration.recordings, calibration.residuals).map(Self.json)),
          ]
        }),
    ]
  }

  private static func json(_ recording: PositionRecording, residual: Double) -> JSON {
    .object(members(recording) + [.init("residual_db", .rounded(residual, places: 1))])
  }

  private static func members(_ recording: PositionRecording) -> [JSON.Member] {
    [
      .init("distance_m", .number(recording.position.distance.metres)),
      .init("carry", .string(recording.position.carry.rawValue)),
      .init("packets", .integer(Int64(recording.packets))),
      .init("rssi_dbm", .rounded(recording.rssi, places: 1)),
      .init("spread_db", .rounded(recording.spread, places: 1)),
      .init("drift_db", .rounded(recording.drift, places: 1)),
      .init("warnings", .array(recording.flaws.map { .string($0.description) })),
    ]
  }

  /// A position among those that are measured now.
  static func json(_ recording: PositionRecording, number: Int, isUsed: Bool) -> JSON {
    .object(
      [
        .init("event", "position"), .init("step", .string(recording.step.id.description)),
        .init("number", .integer(Int64(number))), .init("of", .integer(Int64(CalibrationPosition.all.count))),
        .init("used", .bool(isUsed)),
      ] + members(recording))
  }
}

extension CalibrationPosition {
  /// `1 m, in hand`
  fileprivate var title: String { "\(distance.rawValue) m, \(carry == .hand ? "in hand" : "in a pocket")" }
}
