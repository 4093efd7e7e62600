import ArgumentParser
import Bluetooth
import Configuration
import Domain
import Ranging
import Rider
import SystemIO
import Terminal

struct Locate: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "locate",
    abstract: "Say which step you are standing in front of.")

  @Flag(help: "Keep going: draw a picture, or print each decision where that cannot be.")
  var watch = false

  @Option(help: ArgumentHelp("Time between two decisions with --watch.", valueName: "seconds"))
  var interval = 0.5

  @OptionGroup var presence: PresenceOptions
  @OptionGroup var vehicle: VehicleOptions
  @OptionGroup var saving: SaveOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (0.05...60).contains(interval) else { throw ValidationError("--interval takes 0.05 to 60 seconds.") }
    if watch || saving.save != nil, presence.by == .nfc || presence.by == .qr {
      throw ValidationError("\(watch ? "--watch" : "--save") needs the radio: use it with --by beacon.")
    }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let settings = try presence.settings(context, vehicle: vehicle.vehicle)
    let vehicle = try VehicleFile(reading: settings.vehicleFile()).vehicle
    let interruption = try context.interruption()
    if watch { return try follow(vehicle, settings, interruption, context, console) }
    let search = try PresenceSearch(presence.searches(vehicle, settings, recording: saving.save))
    defer { search.close() }
    let began = ContinuousClock.now
    let guide = Guide(vehicle, try? settings.radioSpec(), limit: settings.timeout.value, console, hasLines: false)
    let finding: Finding
    do {
      defer { guide.clear() }
      finding = try search.find(on: EventLoop(), interruption) { guide.show($0, $1) }
    }
    try tell(FindingReport(vehicle: vehicle, finding: finding, began: began), console)
  }

  /// Shows every decision, until the radio or the time that was given ends it: drawn, or one a line.
  private func follow(
    _ vehicle: Vehicle, _ settings: Settings, _ interruption: Interruption, _ context: Context, _ console: Console
  ) throws {
    let radio = try settings.radioSpec()
    let view = LiveView(context, console, radio: radio)
    defer { view?.close() }
    let search = BeaconSearch(
      vehicle, radio: radio, limit: presence.timeout.timeout, interval: interval, recording: saving.save)
    try search.follow(interruption, tell: view?.note ?? console.note) { location, _ in
      let report = LocationReport(vehicle: vehicle, location: location)
      if let view {
        try view.show(last: [report.line]) { size in
          ApproachFrame(report, size: size, glyphs: view.glyphs, style: console.styled).lines
        }
      } else {
        try console.isJSON ? console.result(report.json) : console.result(report.line)
      }
      return true
    }
  }

  private func tell(_ report: FindingReport, _ console: Console) throws {
    if console.isJSON {
      try console.result(report.json)
    } else {
      for line in report.lines { try console.result(line) }
      try console.result(report.sighting == nil ? "not located: \(report.summary)" : report.summary)
    }
    guard case .undecided(let location, let radio) = report.finding else { return }
    console.note("hint: \(FindingReport.advice(report.vehicle, location, radio))")
    throw Ended(.notLocated)
  }
}
