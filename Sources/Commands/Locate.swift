import ArgumentParser
import Bluetooth
import Configuration
import Ranging
import Domain
import SystemIO
import Terminal

struct Locate: ContextCommand {
  static let configuration = CommandConfiguration(
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
      throw ValidationError("\(watch ? "--watch" : "--save") listens: it goes with beacons alone.")
    }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let settings = try presence.settings(context, vehicle: vehicle.vehicle)
    let vehicle = try VehicleFile(reading: settings.vehicleFile()).vehicle
    let interruption = try context.interruption()
    if watch {
      try follow(vehicle, settings, interruption, context, console)
    } else {
      let finder = PresenceFinder(
        vehicle: vehicle, method: presence.by, settings: settings, codes: presence.codes.qr, saving: saving,
        interruption: interruption, console: console)
      try tell(finder.find(), console)
    }
  }

  /// Every decision, until the radio or the time that was given ends it: drawn, or one a line.
  private func follow(
    _ vehicle: Vehicle, _ settings: Settings, _ interruption: Interruption, _ context: Context, _ console: Console
  ) throws {
    let spec = try settings.radioSpec()
    // What the radio has to tell would be drawn over: it is told when the terminal is given back.
    var view: LocationView?
    var notices: [String] = []
    defer { notices.forEach(console.note) }
    let opened = try spec.open(interruption: interruption) { view == nil ? console.note($0) : notices.append($0) }
    let radio = try saving.recorded(opened)
    defer { radio.close() }
    // Of a replay only the last frame would be seen.
    view = spec.isReplay ? nil : LocationView(console, context)
    defer { view?.close() }
    try Locating(vehicle: vehicle, radio: radio, interval: interval).run(limit: presence.timeout.timeout) {
      location, _ in
      let report = LocationReport(vehicle: vehicle, location: location)
      if let view {
        try view.show(report)
      } else {
        try console.isJSON ? console.result(report.json) : console.result(report.line)
      }
      return true
    }
  }

  private func tell(_ report: any PresenceReport, _ console: Console) throws {
    let isLocated = report.presence != nil
    if console.isJSON {
      try console.result(report.json)
    } else {
      for line in report.lines { try console.result(line) }
      try console.result(isLocated ? report.summary : "not located: \(report.summary)")
    }
    guard isLocated else {
      console.note("hint: \(report.advice)")
      throw Ended(.notLocated)
    }
  }
}
