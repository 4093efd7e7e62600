import Domain
import Encoding
import Glibc
import Ranging
import SystemIO
import Terminal

/// The measurements of an unfinished calibration, in a file beside the vehicle file. A run that was interrupted
/// continues from there. Each position is on the disk before the next one is asked for.
struct CalibrationProgress {
  /// The result at a position.
  enum Found {
    case recorded(PositionRecording)
    case leftOut
  }

  private struct Entry {
    let step: StepID
    let position: CalibrationPosition
    let found: Found
  }

  /// More frames than a radio hears in the longest allowed time.
  private static let mostFrames = 50_000
  /// Bytes.
  private static let limit = 8 << 20

  let path: String
  private let vehicle: Vehicle
  private let vehicleFile: String
  private var entries: [Entry] = []
  /// When the last position was recorded, seconds since 1970.
  private(set) var noted: Int64 = 0

  /// - Parameter vehicleFile: its path.
  init(of vehicle: Vehicle, beside vehicleFile: String) {
    path = vehicleFile + ".calibration"
    (self.vehicle, self.vehicleFile) = (vehicle, vehicleFile)
  }

  /// How many recorded positions belong to these steps.
  func count(of steps: [Step]) -> Int { entries.count { entry in steps.contains { $0.id == entry.step } } }

  func found(of step: Step, at position: CalibrationPosition) -> Found? {
    entries.first { $0.step == step.id && $0.position == position }?.found
  }

  /// Records a position, and syncs it to the disk.
  ///
  /// - Parameter now: seconds since 1970.
  mutating func note(
    _ found: Found, of step: Step, at position: CalibrationPosition, now: Int64
  ) throws(SystemError) {
    noted = now
    entries.removeAll { $0.step == step.id && $0.position == position }
    entries.append(Entry(step: step.id, position: position, found: found))
    try save()
  }

  /// Discards the positions of steps that are finished, or have to be measured again.
  mutating func forget(_ steps: [Step]) throws(SystemError) {
    entries.removeAll { entry in steps.contains { $0.id == entry.step } }
    try save()
  }

  private func save() throws(SystemError) {
    if entries.isEmpty {
      guard unlink(path) == 0 || errno == ENOENT else { throw SystemError("remove", path) }
      return
    }
    try Files.replace(path, with: json.bytes + [0x0A], mode: 0o600, ownedAs: vehicleFile)
  }

  // MARK: - The file

  /// Reads what an earlier run stored.
  ///
  /// Leaves out a recording that is no longer valid, for instance because the step's beacon was replaced.
  mutating func read() throws {
    let bytes: [UInt8]
    do throws(SystemError) { bytes = try Files.readRegular(path, limit: Self.limit) } catch {
      if error.code == ENOENT { return }
      throw error
    }
    let damage = CommandFailure(
      .badData, "\(path) is damaged", hint: "use --again, which measures all positions again and replaces it")
    guard let value = try? JSON(parsing: bytes), let positions = value["positions"]?.array,
      let name = value["vehicle"]?.string, let noted = value["noted"]?.integer
    else { throw damage }
    self.noted = noted
    guard name == vehicle.uuid.description else {
      throw CommandFailure(
        .badData, "\(path) is of another vehicle, \(name)", hint: "use --again, which replaces it, or move it away")
    }
    for value in positions {
      guard let step = value["step"]?.string.flatMap({ StepID($0) }),
        let distance = value["distance"]?.string.flatMap(CalibrationPosition.Distance.init),
        let carry = value["carry"]?.string.flatMap(CalibrationPosition.Carry.init)
      else { throw damage }
      let position = CalibrationPosition(distance, carry)
      guard !entries.contains(where: { $0.step == step && $0.position == position }) else { throw damage }
      guard let frames = value["frames"]?.array else {
        guard value["left_out"]?.bool == true else { throw damage }
        entries.append(Entry(step: step, position: position, found: .leftOut))
        continue
      }
      guard frames.count <= Self.mostFrames else { throw damage }
      guard let known = vehicle.step(step) else { continue }
      var recording = PositionRecording(of: known, at: position, among: vehicle.steps)
      var last = 0.0
      for frame in frames {
        guard let frame = Frame(frame), frame.time >= last else { throw damage }
        last = frame.time
        recording.hear(frame.beacon(of: vehicle), rssi: frame.rssi, at: frame.time)
      }
      if !recording.flaws.contains(where: \.isFatal) {
        entries.append(Entry(step: step, position: position, found: .recorded(recording)))
      }
    }
  }

  private var json: JSON {
    [
      "vehicle": .string(vehicle.uuid.description), "noted": .integer(noted),
      "positions": .array(
        entries.map { entry in
          var members: [JSON.Member] = [
            .init("step", .string(entry.step.description)),
            .init("distance", .string(entry.position.distance.rawValue)),
            .init("carry", .string(entry.position.carry.rawValue)),
          ]
          switch entry.found {
          case .leftOut: members.append(.init("left_out", true))
          case .recorded(let recording):
            let frames = recording.frames.map { Frame($0.beacon, rssi: $0.rssi, time: $0.time).json }
            members.append(.init("frames", .array(frames)))
          }
          return .object(members)
        }),
    ]
  }

  /// `[major, minor, measured power, RSSI, microseconds]`
  private struct Frame {
    private let major: UInt16
    private let minor: UInt16
    private let power: Int8
    let rssi: Int8
    /// Seconds since the recording began.
    let time: Double

    init(_ beacon: IBeacon, rssi: Int8, time: Double) {
      (major, minor, power, self.rssi, self.time) = (beacon.major, beacon.minor, beacon.measuredPower, rssi, time)
    }

    init?(_ value: JSON) {
      guard let values = value.array, values.count == 5, let major = values[0].integer.flatMap(UInt16.init(exactly:)),
        let minor = values[1].integer.flatMap(UInt16.init(exactly:)),
        let power = values[2].integer.flatMap(Int8.init(exactly:)),
        let rssi = values[3].integer.flatMap(Int8.init(exactly:)), let time = values[4].integer, time >= 0
      else { return nil }
      (self.major, self.minor, self.power, self.rssi) = (major, minor, power, rssi)
      self.time = Double(time) / 1e6
    }

    func beacon(of vehicle: Vehicle) -> IBeacon {
      IBeacon(uuid: vehicle.uuid, major: major, minor: minor, measuredPower: power)
    }

    var json: JSON {
      let microseconds = Int64((max(time, 0) * 1e6).rounded())
      return .array([Int64(major), Int64(minor), Int64(power), Int64(rssi), microseconds].map(JSON.integer))
    }
  }
}
