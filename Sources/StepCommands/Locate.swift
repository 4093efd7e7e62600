import ArgumentParser
import Bluetooth
import Configuration
import Ranging
import StepDomain
import SystemIO
import Terminal

struct Locate: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Say which step you are standing in front of.")

  @Flag(help: "Keep going, and print every decision.")
  var watch = false

  @Option(help: ArgumentHelp("Time between two decisions with --watch.", valueName: "seconds"))
  var interval = 0.5

  @OptionGroup var vehicle: VehicleOptions
  @OptionGroup var radio: RadioOptions
  @OptionGroup var timeout: TimeoutOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (0.05...60).contains(interval) else { throw ValidationError("--interval takes 0.05 to 60 seconds.") }
  }

  func run() throws {
    let console = output.console
    let settings = try Settings(vehicle: vehicle.vehicle, radio: radio.radio, timeout: timeout.timeout)
    let vehicle = try VehicleFile(reading: settings.vehicleFile()).vehicle
    let interruption = try Interruption()
    let radio = try settings.radioSpec().open(interruption: interruption)
    defer { radio.close() }

    try watch ? follow(vehicle, radio, console) : decide(vehicle, radio, limit: settings.timeout.value, console)
  }

  /// Every decision, until the radio or the time that was given ends it.
  private func follow(_ vehicle: Vehicle, _ radio: any Radio, _ console: Console) throws {
    try Locating(vehicle: vehicle, radio: radio, interval: interval).run(limit: timeout.timeout) { location in
      let report = LocationReport(vehicle: vehicle, location: location)
      try console.isJSON ? console.result(report.json) : console.result(report.line)
      return true
    }
  }

  /// The first decision that is enough, or the last one there is.
  private func decide(_ vehicle: Vehicle, _ radio: any Radio, limit: Double, _ console: Console) throws {
    let report = try Presence.find(vehicle, radio, limit: limit).report
    if console.isJSON {
      try console.result(report.json)
    } else {
      for line in report.lines { try console.result(line) }
      try console.result(report.location.isLocated ? report.summary : "not located: \(report.summary)")
    }
    guard report.location.isLocated else {
      console.note("hint: \(report.advice)")
      throw Ended(.notLocated)
    }
  }
}
