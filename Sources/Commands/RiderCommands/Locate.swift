import ArgumentParser
import Bluetooth
import CommandParts
import Domain
import Encoding
import FileFormats
import Ranging
import Rider
import SystemIO
import Terminal
import UserSettings

struct Locate: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "locate",
    abstract: "Say which step you are standing in front of.", usage: "stepctl locate [<options>] [<vehicle>]")

  @Flag(help: "Keep going: draw a picture or, without a terminal, print each decision.")
  var watch = false

  @Option(
    name: .customLong("interval"),
    help: ArgumentHelp("Time between two decisions with --watch (default: 0.5).", valueName: "seconds"))
  var pause: TimeSpan?

  private var interval: Double { pause?.seconds ?? 0.5 }

  @OptionGroup var playing: PlayingOptions
  @OptionGroup var presence: PresenceOptions
  @OptionGroup var vehicle: NamedVehicleOptions
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
    let settings = try presence.request.settings(context, vehicle: vehicle.vehicle)
    let interruption = try context.interruption()
    let file = try presence.request.vehicleFile(settings, context, interruption, console)
    if watch { return try follow(file, settings, interruption, context, console) }
    let vehicle = file.vehicle
    let speed = console.pace(playing.speed)
    let searches = try presence.request.searches(
      vehicle, settings, speed: speed, recording: saving.save, trace: console.trace)
    let search = try PresenceSearch(searches)
    defer { search.close() }
    let began = Instant.now
    let radio = searches.contains { $0.method == .beacon } ? try settings.radioSpec() : nil
    let limit = radio.map { $0.isReplay && speed == nil } == false ? settings.timeout.value : nil
    let guide = Guide(vehicle, limit: limit, console, hasLines: false)
    let finding: Finding
    do {
      defer { guide.clear() }
      finding = try search.find(on: EventLoop(), interruption) { guide.show($0, $1) }
    } catch let error as RadioError {
      throw presence.request.leadingOn(error)
    }
    try tell(FindingReport(vehicle: vehicle, finding: finding, began: began), console)
  }

  /// Shows every decision, drawn or one a line, until the radio or the time limit ends it.
  private func follow(
    _ file: VehicleFile, _ settings: Settings, _ interruption: Interruption, _ context: Context, _ console: Console
  ) throws {
    let vehicle = file.vehicle
    let radio = try settings.radioSpec()
    let view = LiveView(context, console)
    let trace = view == nil ? console.trace : nil
    let search = BeaconSearch(
      vehicle, radio: radio, limit: presence.timeout.timeout, interval: interval,
      speed: console.pace(playing.speed), recording: saving.save, trace: trace)
    if let view {
      let way = RideView.Way(
        vehicle: vehicle, name: settings.naming(file), radio: radio, speed: console.pace(playing.speed),
        limit: presence.timeout.timeout)
      // The picture takes the terminal's keys, so nobody could type a passphrase.
      let unlock = context.unlock(interruption, noInput: true)
      _ = try Ride(way, context, console, view).run(
        nil, [search], until: interruption, patience: settings.patience, goesOn: true
      ) { try file.riderAccess(unlock: unlock) }
      return
    }
    try search.follow(interruption, tell: console.note) { location, _ in
      let report = LocationReport(vehicle: vehicle, location: location)
      try console.isJSON ? console.result(report.json) : console.result(report.line)
      return true
    }
  }

  private func tell(_ report: FindingReport, _ console: Console) throws {
    let advice: String? =
      if case .undecided(let location, let radio) = report.finding {
        FindingReport.advice(report.vehicle, location, radio)
      } else { nil }
    if console.isJSON {
      let members = report.json.object ?? []
      try console.result(advice.map { report.notLocated($0).object(members) } ?? report.json)
    } else {
      for line in report.lines { try console.result(line) }
      try console.result(report.sighting == nil ? "not located: \(report.summary)" : report.summary)
    }
    guard let advice else { return }
    console.note("hint: \(advice)")
    throw Ended(.notLocated)
  }
}
