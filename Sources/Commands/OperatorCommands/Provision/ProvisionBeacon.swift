import ArgumentParser
import CommandParts
import Domain
import Encoding
import FileFormats
import Operator
import Ranging
import StepdConfiguration
import SystemIO
import Terminal
import UserSettings

struct ProvisionBeacon: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "beacon",
    abstract: "Show what to program into a beacon, and note what it sends.",
    usage: "stepctl provision beacon [<options>] [<vehicle>] --step <id>",
    discussion: """
      A beacon that you buy always sends the same. Anyone who has heard it can send a copy anywhere, and the vehicle \
      cannot tell them apart. The beacons that stepd sends change; see `stepctl provision vehicle --beacon`.
      """)

  @Option(help: ArgumentHelp("The step that the beacon is for.", valueName: "id"), completion: LiveCompletion.step)
  var step: StepID

  @Option(help: "The minor that it sends (default: the vehicle file's, else 1).")
  var minor: UInt16?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The RSSI at 1 m that it sends (default: the vehicle file's, else -59).", valueName: "dbm"))
  var measuredPower: Int8?

  @Flag(help: "Note the minor, and the measured power if given, in the vehicle file.")
  var save = false

  @OptionGroup var vehicle: NamedVehicleOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if let measuredPower, measuredPower >= 0 { throw ValidationError("--measured-power is below 0 dBm.") }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let file = try VehicleFile(reading: context.settings(vehicle: vehicle.vehicle).vehicleFile())
    let report = try BeaconReport(file, file.vehicle.required(step), minor: minor, measuredPower: measuredPower)
    try checkMinorStays(file)
    if save { try write(report) }
    guard !console.isJSON else { return try console.result(report.json(isSaved: save)) }
    for line in report.lines { try console.result(line) }
    if save { try console.result("wrote \(file.path); restart stepd to apply this") }
    console.note(
      """
      Anyone who has heard this beacon can send a copy from elsewhere: it proves only
      that somebody knows it. The beacons that stepd sends change instead.
      """)
  }

  /// A step with rotating minors must not get a fixed minor: the vehicle would not accept it as proof, and stepd does
  /// not start when the vehicle file has one.
  private func checkMinorStays(_ file: VehicleFile) throws {
    let controller = "\(Files.parent(of: file.path))/stepd.toml"
    guard let file = try? ControllerFile(reading: controller), file.beacons[step] != nil else { return }
    throw CommandFailure(
      .configuration, "\(controller): stepd sends the \(step) step's beacon itself; nothing was written",
      hint: "remove [beacon.steps.\(step)] from that file first")
  }

  private func write(_ report: BeaconReport) throws {
    let path = report.file.path
    try Files.edit(path) { text in
      let text = try VehicleFile.setting(minor: report.beacon.minor, of: step, in: text, path: path)
      guard let measuredPower else { return text }
      return try VehicleFile.setting(measuredPower: measuredPower, of: step, in: text, path: path)
    }
  }
}

extension Vehicle {
  /// - Throws: a `CommandFailure` that names the vehicle's steps.
  func required(_ id: StepID) throws -> Step {
    guard let step = step(id) else {
      let known = steps.map(\.id.description).joined(separator: ", ")
      throw CommandFailure(.usage, "\(printable(name)) has no step \(id): it has \(known)")
    }
    return step
  }
}
