import ArgumentParser
import Configuration
import Domain
import Encoding
import Ranging
import SystemIO
import Terminal

struct ProvisionBeacon: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "beacon",
    abstract: "Say what to program into a beacon that was bought, and note what it sends.",
    usage: "stepctl provision beacon [<options>] --step <id>",
    discussion: """
      Such a beacon sends the same for ever. Whoever has heard it once can send it too, anywhere, and the vehicle cannot \
      tell the two apart. Beacons that stepd sends itself go stale; see `stepctl provision vehicle --beacon`.
      """)

  @Option(help: ArgumentHelp("The step that the beacon is for.", valueName: "id"))
  var step: StepID

  @Option(help: "The minor that it sends (default: the vehicle file's, or else 1).")
  var minor: UInt16?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The RSSI at 1 m, which it sends (default: the vehicle file's, or else -59).", valueName: "dbm"))
  var measuredPower: Int8?

  @Flag(help: "Note the minor, and the measured power if it was given, in the vehicle file.")
  var save = false

  @OptionGroup var vehicle: VehicleOptions
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
    if save { try console.result("wrote \(file.path); stepd has to read it anew") }
    console.note(
      """
      Whoever has heard this beacon can send the same from elsewhere; it shows no more
      than that somebody knows it. Beacons that stepd sends go stale instead.
      """)
  }

  /// A minor that never changes is not for a step whose minors rotate: the vehicle takes no such proof, and with it in
  /// the vehicle file stepd does not start.
  private func checkMinorStays(_ file: VehicleFile) throws {
    let controller = "\(Files.parent(of: file.path))/stepd.toml"
    guard let file = try? ControllerFile(reading: controller), file.beacons[step] != nil else { return }
    throw CommandFailure(
      .configuration, "\(controller): stepd sends the \(step) step's beacon itself; nothing was written",
      hint: "take [beacon.steps.\(step)] out of that file first")
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
  /// - Throws: a `CommandFailure` that names those there are.
  func required(_ id: StepID) throws -> Step {
    guard let step = step(id) else {
      let known = steps.map(\.id.description).joined(separator: ", ")
      throw CommandFailure(.usage, "\(printable(name)) has no step \(id): it has \(known)")
    }
    return step
  }
}
