import ArgumentParser
import Bluetooth
import CommandParts
import Domain
import Encoding
import FileFormats
import Ranging
import Rider
import StepProtocol
import SystemIO
import Terminal
import UserSettings

struct Open: RequestCommand {
  static let configuration = CommandConfiguration(
    commandName: "open",
    abstract: "Open the step that you are standing in front of.", usage: "stepctl open [<options>] [left|right|facing]")

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "How long to wait while something on the road comes towards the step, as 20s or 2m (default: 20).",
      valueName: "seconds"))
  var wait: TimeSpan?

  @Option(
    name: .customLong("import"),
    help: ArgumentHelp(
      "Add the vehicle first from what your operator gave you: a file, a picture of its codes, or - (standard input).",
      valueName: "file"),
    completion: .file())
  var sources: [String] = []

  @OptionGroup var move: MoveOptions

  var request: MoveRequest {
    var request = move.request(.open)
    if let wait { request.wait = .milliseconds(Int64(wait.seconds * 1000)) }
    request.sources = sources
    return request
  }

  func validate() throws {
    if let wait, !(0...600).contains(wait.seconds) { throw ValidationError("--wait takes 0 to 600 seconds.") }
    guard sources.isEmpty || move.vehicle.vehicle == nil else {
      throw ValidationError("--import says which vehicle is meant, and excludes --vehicle.")
    }
  }
}

struct Close: RequestCommand {
  static let configuration = CommandConfiguration(
    commandName: "close",
    abstract: "Close the step that you are standing in front of.",
    usage: "stepctl close [<options>] [left|right|facing]")
  @OptionGroup var move: MoveOptions

  var request: MoveRequest { move.request(.close) }
}

/// Selects the step. A side is a claim, and the proof must agree with it.
enum SideChoice: String, ExpressibleByArgument, CaseIterable {
  case left, right, facing

  var side: Side? { Side(rawValue: rawValue) }
}

struct MoveOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "Which step: left, right, or the one that you are facing (which is the default).", valueName: "left|right|facing")
  )
  var place: SideChoice?

  @Option(help: "The side as an option, in place of the argument.")
  var side: SideChoice?

  @Flag(help: "Draw a picture of the vehicle while you walk up to the step.")
  var watch = false

  @Option(
    help: ArgumentHelp(
      "The radio that calls a vehicle which listens for you, and not a recording (default: the radio that listens).",
      valueName: "spec", visibility: .hidden),
    completion: LiveCompletion.radio)
  var callRadio: String?

  @OptionGroup var way: ViaOptions
  @OptionGroup var playing: PlayingOptions
  @OptionGroup var presence: PresenceOptions
  @OptionGroup var vehicle: VehicleOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if watch, presence.by == .nfc || presence.by == .qr {
      throw ValidationError("--watch needs the radio: use it with --by beacon.")
    }
    if let place, let side, place != side {
      throw ValidationError("--side \(side.rawValue) contradicts \(place.rawValue).")
    }
  }

  /// What was typed. Nothing on the road blocks a step that closes.
  func request(_ target: Command.Move.Target) -> MoveRequest {
    MoveRequest(
      target, side: (place ?? side)?.side, isWatched: watch, speed: playing.speed, callRadio: callRadio,
      presence: presence.request, via: way.via,
      vehicle: vehicle.vehicle, output: output.choice)
  }
}

/// `open` and `close`: find the step, prove presence, send the command, wait for the confirmation. Prints each link of
/// the chain.
///
/// Connects to the broker and gets the vehicle's challenge while the rider is still approaching.
struct MoveRequest: Request {
  let target: Command.Move.Target
  /// Nil for the step that the rider faces.
  var side: Side?
  /// How long to keep asking while something on the road approaches the step.
  var wait: Duration
  /// From where the vehicle is added first; empty for a known vehicle.
  var sources: [String] = []
  var isWatched: Bool
  /// How many times faster than its own time a recording is played on a terminal.
  var speed: Double
  var callRadio: String?
  var presence: PresenceRequest
  var via: ViaChoice?
  var vehicle: String?
  var output: OutputChoice

  init(
    _ target: Command.Move.Target, side: Side? = nil, isWatched: Bool = false, speed: Double = 1,
    callRadio: String? = nil, presence: PresenceRequest = PresenceRequest(), via: ViaChoice? = nil,
    vehicle: String? = nil,
    output: OutputChoice = OutputChoice()
  ) {
    self.target = target
    self.side = side
    wait = target == .open ? .seconds(20) : .zero
    self.isWatched = isWatched
    self.speed = speed
    self.callRadio = callRadio
    self.presence = presence
    self.via = via
    self.vehicle = vehicle
    self.output = output
  }

  func run(in context: Context) throws {
    let started = Instant.now
    let console = output.console(context)
    let settings = try presence.settings(context, vehicle: vehicle)
    let added = try added(settings, context, console)
    let interruption = try context.interruption()
    let file = try added ?? presence.vehicleFile(settings, context, interruption, console)
    var access = try CurrentAccess(file, context, interruption, console)
    if let side { try access.rider.vehicle.checkStep(at: side) }
    while true {
      let trace = isWatched ? nil : console.trace
      let vehicle = access.rider.vehicle
      let view = isWatched ? LiveView(context, console) : nil
      let pace = console.pace(speed)
      let searches = try presence.searches(vehicle, settings, speed: pace, trace: trace)
      // Searches that need a radio are created together with it.
      let radio = searches.contains { $0.method == .beacon } ? try settings.radioSpec() : nil
      let way = RideView.Way(
        vehicle: vehicle, name: settings.naming(access.file), side: side, radio: radio, speed: pace,
        limit: settings.timeout.value, calling: try caller(), wait: wait, via: try settings.via(via))
      let ride = Ride(way, context, console, view)
      do {
        let ending = try ride.run(
          target, searches, until: interruption, patience: settings.patience, preparation: access.preparation
        ) { [rider = access.rider] in rider }
        return try finish(ending, vehicle, access, by: ride.path, since: started, console)
      } catch let failure as any Failure {
        // Data that was read from a pipe cannot be read again.
        if radio != .btsnoop("-"), presence.qr != "-", try access.isMended(after: failure) { continue }
        access.remember(failure)
        let told = (failure as? RadioError).map { presence.leadingOn($0) } ?? failure
        let said = ride.told(told, after: started.duration(to: .now).inSeconds)
        guard let meaning = access.meaning(of: failure) else { throw said }
        throw CommandFailure(said.exitStatus, said.description, hint: meaning, details: said.details)
      }
    }
  }

  private func finish(
    _ ending: Approach.Ending, _ vehicle: Vehicle, _ access: CurrentAccess, by path: RiderClient.Path,
    since started: Instant, _ console: Console
  ) throws {
    switch ending {
    case .moved(let sighting, let statement):
      let duration = started.duration(to: .now).inSeconds
      access.forgetRefusal()
      console.note("time", "\(tenths(duration)) s")
      try print(sighting, statement, by: path, after: duration, console)
    case .undecided(let location, let radio):
      throw FindingReport(vehicle: vehicle, finding: .undecided(location, radio), began: started)
        .notLocated(FindingReport.advice(vehicle, location, radio, to: side))
    case .lacking(let sighting, let shortfall):
      throw CommandFailure(shortfall, of: sighting, side)
    case .stopped(let statements, let sighting):
      guard let sighting, let statement = statements.first(where: { $0.step == sighting.step.id }) else {
        throw CommandFailure(.notLocated, "you stopped it before a command was sent")
      }
      // The stop came too late to keep it from its end.
      if statement.position.rawValue == target.rawValue {
        return try print(sighting, statement, by: path, after: started.duration(to: .now).inSeconds, console)
      }
      throw CommandFailure(
        .unconfirmed, "you stopped the \(statement.step) step: \(statement.position.state)",
        hint: "`stepctl \(target.rawValue)` moves it on")
    case .quit:
      throw CommandFailure(.notLocated, "ended before a command was sent")
    }
  }

  /// The file of the vehicle that is added first; nil for a known vehicle.
  private func added(_ settings: Settings, _ context: Context, _ console: Console) throws -> VehicleFile? {
    guard !sources.isEmpty else { return nil }
    let source = sources.count == 1 ? ImportSource.file(sources[0]) : .pictures(sources)
    let importing = (["stepctl", "config", "import"] + sources + ["--yes"]).map(shellWord).joined(separator: " ")
    let adding = Import(source: source, advice: "`\(importing)` trusts it")
    let (vehicle, place) = try adding.run(context, settings, console) { vehicle, place in
      guard vehicle.vehicleFile.rider != nil || place.known?.rider != nil else {
        throw CommandFailure(
          .configuration, "this is only the vehicle's code; you also need a token to move its steps",
          hint: "ask your operator for access; `stepctl config import` adds the vehicle without it")
      }
    }
    let path = settings.folders.displayed(place.vehicleFile)
    console.note("vehicle", "\(vehicle.vehicleFile.vehicle.name) is in \(path); next time `stepctl open` is enough")
    return try VehicleFile(reading: place.vehicleFile)
  }

  private func caller() throws -> RadioSpec? {
    guard let callRadio else { return nil }
    do throws(MalformedRadioSpec) { return try RadioSpec(callRadio) } catch {
      throw CommandFailure(.usage, "--call-radio: \(error)")
    }
  }
}

extension CommandFailure {
  /// The rider was found, but the sighting is not enough.
  fileprivate init(_ shortfall: Shortfall, of sighting: Sighting, _ side: Side?) {
    let step = sighting.step.id
    let method = JSON.Member("method", .string(sighting.method.rawValue))
    switch shortfall {
    case .otherSide:
      let side = side?.rawValue ?? "other"
      self.init(
        .otherSide, "you are at the \(step) step, not at the \(side) one; no command was sent",
        hint: "go to the \(side) side, or leave the side out",
        details: [.init("step", .string(step.description)), .init("asked", .string(side)), method])
    case .zone:
      self.init(
        .notLocated, "not near enough: \(shortfall.sentence(of: sighting))", hint: "come closer to the step",
        details: [method])
    case .notHeard(let place):
      self.init(
        place == nil ? .notLocated : .otherSide, "not heard: \(shortfall.sentence(of: sighting))",
        hint: "hold the device in front of you, towards the step",
        details: (place.map { [.init("heard", .string($0.description))] } ?? []) + [method])
    case .method, .copy:
      self.init(.notLocated, "not located: \(shortfall.sentence(of: sighting))", details: [method])
    }
  }
}

extension MoveRequest {
  fileprivate func print(
    _ sighting: Sighting, _ statement: Statement, by path: RiderClient.Path, after duration: Double,
    _ console: Console
  ) throws {
    if console.isJSON {
      try console.result([
        "outcome": "done", "step": .string(statement.step.description),
        "position": .string(statement.position.rawValue), "method": .string(sighting.method.rawValue),
        "zone": .string((sighting.reading?.zone ?? .unknown).rawValue),
        "distance_m": .rounded(sighting.reading?.distance?.metres, places: 2),
        "via": .string(path.rawValue), "duration_s": .rounded(duration, places: 3),
      ])
    } else {
      try console.result("the \(statement.step) step is \(statement.position.state)")
    }
  }
}

extension Vehicle {
  /// - Throws: if the vehicle has no step at that side.
  @discardableResult
  func checkStep(at side: Side) throws(CommandFailure) -> Step {
    guard let step = step(at: side) else {
      throw CommandFailure(.configuration, "\(name) has no step at the \(side.rawValue) side")
    }
    return step
  }
}

extension Console {
  /// Prints a line with a label, such as a link of the chain from the rider to the step: `answer   moving`
  func note(_ label: String, _ text: String) { note(labelled(label, text)) }

  /// Prints a line of the result with a label.
  func result(_ label: String, _ text: String) throws { try result(labelled(label, text)) }

  /// The line that `note` prints, for printing it later.
  func labelled(_ label: String, _ text: String) -> String {
    "\(styled(label.aligned(to: Self.labelColumns - 1), .dim)) \(printable(text))"
  }

  /// A label, and the space behind it.
  static let labelColumns = 9
}
