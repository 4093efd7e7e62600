import ArgumentParser
import Certificates
import CommandParts
import Domain
import Encoding
import FileFormats
import Geography
import Positioning
import Rider
import SystemIO
import Terminal
import UserSettings

struct Find: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "find",
    abstract: "Say where your vehicle is from here: how far, and in which direction.",
    usage: "stepctl find [<options>] [<vehicle>]",
    discussion: "It needs a receiver of satellites that gpsd serves. From 15 m on, `stepctl locate` knows more.")

  // A southern latitude begins with a hyphen.
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Where to: latitude and longitude, as in 48.7758,9.1829 (default: the vehicle's [place], else its fleet's).",
      valueName: "place"))
  var to: Place?

  @Option(help: ArgumentHelp("Where gpsd listens.", valueName: "host:port"))
  var gpsd = GPSConnection.usual

  @Flag(help: "Keep going: draw an arrow or, without a terminal, print a line for each position.")
  var watch = false

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "How long to wait until the receiver has settled, as 60, 60s or 2m (default: 60).", valueName: "seconds"))
  var timeout: TimeSpan?

  @OptionGroup var vehicle: NamedVehicleOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if let timeout, !(0.1...3600).contains(timeout.seconds) {
      throw ValidationError("--timeout takes 0.1 to 3600 seconds.")
    }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let interruption = try context.interruption()
    let goal = try goal(context, interruption, console)
    do {
      let search = FindSearch(goal, try GPSConnection(gpsd, interruption), context, console, goesOn: watch)
      defer { search.close() }
      try search.run(until: interruption, for: timeout?.seconds ?? (watch ? nil : 60))
      guard !watch else { return }
      if search.isInterrupted { throw Interrupted() }
      console.progress.clear()
      guard let found = search.found else {
        let last = search.report
        throw CommandFailure(.notLocated, last.line, hint: last.advice, details: last.json.object ?? [])
      }
      try console.isJSON ? console.result(found.json) : console.result(found.line)
    } catch let error as any Failure where !error.isInterruption {
      throw try told(error, goal, context, console)
    }
  }

  /// Without this computer's place, the vehicle's is still worth knowing: a map leads there, too.
  private func told(
    _ error: any Failure, _ goal: FindGoal, _ context: Context, _ console: Console
  ) throws -> any Failure {
    guard goal.source != .option else { return error }
    if console.isJSON {
      guard error.details.isEmpty else { return error }
      let report = FindReport(goal: goal, .none, hasReceiver: false, now: context.seconds)
      return CommandFailure(
        error.exitStatus, error.description, hint: error.hint, details: report.json.object ?? [])
    }
    for line in goal.lines(at: context.seconds) { try console.result(line) }
    return error
  }

  private func goal(_ context: Context, _ interruption: Interruption, _ console: Console) throws -> FindGoal {
    if let to { return FindGoal(name: "the place", place: to.coordinate, source: .option) }
    let file = try context.settings(vehicle: vehicle.vehicle).chosenVehicleFile(context, interruption, console)
    if let place = file.place { return FindGoal(name: file.vehicle.name, place: place, source: .file) }
    let reason: String
    do {
      if let goal = try FindGoal(asking: file.vehicle, context, interruption) { return goal }
      reason = ""
    } catch let error as any Failure where !error.isInterruption {
      reason = "; \(error.description)"
    }
    throw CommandFailure(
      .configuration, "\(file.path): it does not say where the vehicle is",
      hint: "give --to LATITUDE,LONGITUDE, or write them into the file below [place]\(reason)")
  }
}

/// Listens to gpsd until the receiver has settled or, with `--watch`, until the user quits.
private final class FindSearch {
  private let goal: FindGoal
  private let connection: GPSConnection
  private let context: Context
  private let console: Console
  private let goesOn: Bool
  /// Nil if lines are printed, or only the result.
  private let view: LiveView?
  private let begin: Instant
  private var settling = Settling()
  private var hasReceiver = true
  /// Fires if the receiver stays silent.
  private var silence: Registration?

  private(set) var isInterrupted = false
  /// The report of a receiver that has settled; unused with `--watch`.
  private(set) var found: FindReport?

  init(_ goal: FindGoal, _ connection: GPSConnection, _ context: Context, _ console: Console, goesOn: Bool) {
    (self.goal, self.connection, self.context, self.console) = (goal, connection, context, console)
    self.goesOn = goesOn
    view = goesOn ? LiveView(context, console) : nil
    begin = context.clocks.steady()
  }

  func close() {
    console.progress.clear()
    view?.close()
  }

  var report: FindReport {
    FindReport(goal: goal, settling.state, hasReceiver: hasReceiver, now: context.seconds)
  }

  /// - Parameter patience: seconds; nil for no limit.
  func run(until interruption: Interruption, for patience: Double?) throws {
    let loop = try EventLoop()
    if let keyboard = view?.takeKeys() {
      try loop.watch(keyboard) { [self] in
        if view?.keys.contains(where: { "qQ".contains($0) }) == true { loop.stop() }
      }
    }
    try loop.watch(connection.descriptor) { [self] in
      for report in try connection.received(at: (context.clocks.steady() - begin).inSeconds) {
        guard try located(report) else { continue }
        if case .fix = report { expectMore(on: loop) }
        try show(isNew: true)
        if found != nil { loop.stop() }
      }
    }
    try loop.watch(interruption.number) { [self] in
      isInterrupted = true
      loop.stop()
    }
    if let patience { loop.schedule(at: .now + .milliseconds(Int64(patience * 1000))) { loop.stop() } }
    try show(isNew: false)
    try loop.run()
  }

  /// A receiver that falls silent does not report it, and its last place is soon outdated.
  private func expectMore(on loop: EventLoop) {
    silence?.cancel()
    silence = loop.schedule(at: .now + .seconds(Settling.patience)) { [self] in
      settling.take(nil)
      try show(isNew: true)
    }
  }

  /// - Returns: false for a report that changes nothing.
  private func located(_ report: GPSReport) throws -> Bool {
    switch report {
    case .fix(let fix, _): settling.take(fix)
    case .noFix: settling.take(nil)
    case .receivers(let count):
      hasReceiver = count > 0
      if !hasReceiver { settling.take(nil) }
    case .error(let text): throw CommandFailure(.unavailable, "gpsd says: \(printable(text))")
    case .other: return false
    }
    return true
  }

  private func show(isNew: Bool) throws {
    let report = self.report
    if let view {
      try view.show(last: [report.line]) { size in
        FindFrame(report, keys: "q quit", size: size, glyphs: view.glyphs, style: console.styled).lines
      }
    } else if goesOn {
      if isNew { try console.isJSON ? console.result(report.json) : console.result(report.line) }
    } else if case .settled = settling.state {
      found = report
    } else {
      console.progress.show(report.line)
    }
  }
}

/// A vehicle's place, and its source.
struct FindGoal: Equatable {
  let name: String
  let place: Coordinate
  let source: Source

  enum Source: Equatable {
    case option, file
    /// The place's age counts from this time, by this computer's clock: Unix time.
    case fleet(since: Int64)
  }

  /// How long to wait for the fleet's server.
  private static let patience = Duration.seconds(10)

  init(name: String, place: Coordinate, source: Source) {
    (self.name, self.place, self.source) = (name, place, source)
  }

  /// Asks the fleet's server at which the user is logged in. Nil without a login, or if the server does not know the
  /// place.
  fileprivate init?(asking vehicle: Vehicle, _ context: Context, _ interruption: Interruption) throws {
    guard let folder = try? context.fleetFolder(), try folder.login()?.tokens != nil else { return nil }
    let client = try context.fleet(interruption, deadline: context.clocks.steady() + Self.patience)
    guard let place = try client.vehicle(vehicle.uuid)?.place else { return nil }
    self.init(name: vehicle.name, place: place.position, source: .fleet(since: place.since - client.lead))
  }

  /// For people without a receiver: the place with its source, and links that open a map.
  fileprivate func lines(at now: Int64) -> [String] {
    ["\(printable(name)): \(position)\(origin(at: now).map { "; \($0)" } ?? "")", geo, link]
  }

  /// Degrees; five decimals are a metre.
  private var position: String { "\(Self.degrees(place.latitude)), \(Self.degrees(place.longitude))" }

  /// RFC 5870.
  var geo: String { "geo:\(Self.degrees(place.latitude)),\(Self.degrees(place.longitude))" }

  /// A map that needs no account.
  var link: String {
    let (latitude, longitude) = (Self.degrees(place.latitude), Self.degrees(place.longitude))
    return "https://www.openstreetmap.org/?mlat=\(latitude)&mlon=\(longitude)#map=18/\(latitude)/\(longitude)"
  }

  private static func degrees(_ value: Double) -> String {
    let units = Int64((abs(value) * 100_000).rounded())
    let decimals = String(units % 100_000)
    let zeros = String(repeating: "0", count: 5 - decimals.count)
    return "\(value < 0 && units > 0 ? "-" : "")\(units / 100_000).\(zeros)\(decimals)"
  }

  /// `from the fleet, 12 min ago`: a place that may be old states its age.
  func origin(at now: Int64) -> String? { age(at: now).map { "from the fleet, \(span($0)) ago" } }

  /// Seconds since the fleet's server learned the place; nil for a place from another source.
  func age(at now: Int64) -> Int64? { if case .fleet(let since) = source { max(0, now - since) } else { nil } }
}

extension HostPort: ExpressibleByArgument {
  package init?(argument: String) { try? self.init(argument[...], usual: GPSConnection.usual.port) }
}

/// The way to a vehicle, as far as the receiver can tell.
struct FindReport: Equatable {
  let goal: FindGoal
  let state: Settling.State
  let hasReceiver: Bool
  /// Unix time.
  let now: Int64

  /// Within this many metres the radio is more precise than satellites.
  static let near = 15.0

  init(goal: FindGoal, _ state: Settling.State, hasReceiver: Bool, now: Int64) {
    self.goal = goal
    self.state = state
    self.hasReceiver = hasReceiver
    self.now = now
  }

  /// Nil while there is no place, or only a misleading one.
  var way: Way? { if case .settled(let fix) = state { Way(from: fix, to: goal.place) } else { nil } }

  var isNear: Bool { way.map { $0.distance <= Self.near } ?? false }

  var origin: String? { goal.origin(at: now) }

  private var fix: Fix? {
    switch state {
    case .none: nil
    case .wandering(let fix), .settled(let fix): fix
    }
  }

  /// `Rolling Chassis: 120 m to the north-east (48°), ± 8 m; from the fleet, 12 min ago`
  var line: String { origin.map { "\(result); \($0)" } ?? result }

  /// The line without the source of the place.
  var result: String { fix?.isSimulated == true ? "\(sentence); your place is simulated" : sentence }

  private var sentence: String {
    let name = printable(goal.name)
    switch state {
    case .none: return "\(name): \(hasReceiver ? "the receiver has no fix yet" : "gpsd has no receiver yet")"
    case .wandering(let fix):
      let accuracy = fix.accuracy.map { ", ± \(metres($0))" } ?? ""
      return "\(name): GPS has not settled yet; about \(metres(fix.position.distance(to: goal.place)))\(accuracy)"
    case .settled(let fix):
      let way = Way(from: fix, to: goal.place)
      let guess = fix.accuracy == nil ? " (a guess: the receiver tells no accuracy)" : ""
      let accuracy = "± \(metres(way.accuracy))\(guess)"
      if isNear { return "\(name): within \(metres(Self.near)), \(accuracy); use stepctl locate" }
      guard let direction = way.direction else {
        return "\(name): \(metres(way.distance)), \(accuracy): too near for GPS to say in which direction"
      }
      let turn = way.turn.map { ", \(Self.words(turn: $0))" } ?? ""
      return """
        \(name): \(metres(way.distance)) to the \(Self.point(of: direction.bearing)) \
        (\(Int(direction.bearing.rounded()) % 360)°)\(turn), \(accuracy)
        """
    }
  }

  /// What to do if there is no way.
  var advice: String {
    switch state {
    case .none where !hasReceiver: "connect a receiver; gpsd(8) says how"
    case .none: "go where you see the sky, and wait: a receiver takes half a minute and more to settle"
    case .wandering: "wait where you see the sky: a receiver takes half a minute and more to settle"
    case .settled: "use stepctl locate when you are there"
    }
  }

  var json: JSON {
    let word =
      switch state {
      case .none: "none"
      case .wandering: "wandering"
      case .settled: "settled"
      }
    let source =
      switch goal.source {
      case .option: "option"
      case .file: "file"
      case .fleet: "fleet"
      }
    return [
      "vehicle": .string(goal.name), "state": .string(word),
      "distance_m": .rounded(fix.map { $0.position.distance(to: goal.place) }, places: 1),
      "accuracy_m": .rounded(fix?.accuracy ?? way?.accuracy, places: 1),
      "accuracy_is_guess": .bool(way != nil && fix?.accuracy == nil),
      "simulated": .bool(fix?.isSimulated ?? false),
      "bearing_deg": .rounded(way?.direction?.bearing, places: 1),
      "bearing_accuracy_deg": .rounded(way?.direction?.accuracy, places: 1),
      "turn_deg": .rounded(way?.turn, places: 1), "near": .bool(isNear),
      "place_from": .string(source), "place_age_s": goal.age(at: now).map(JSON.integer) ?? .null,
      "place_geo": .string(goal.geo), "place_link": .string(goal.link),
    ]
  }

  private func metres(_ value: Double) -> String {
    value >= 9999.5 ? "\(tenths(value / 1000)) km" : "\(Int(min(value, 1e9).rounded())) m"
  }

  /// One of eight points of the compass.
  static func point(of bearing: Double) -> String {
    let points = ["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"]
    return points[Int((bearing / 45).rounded()) % 8]
  }

  /// Text for a person on foot.
  static func words(turn: Double) -> String {
    switch turn {
    case -22.5...22.5: "ahead"
    case 22.5..<67.5: "half right"
    case 67.5..<112.5: "to your right"
    case -67.5 ..< -22.5: "half left"
    case -112.5 ..< -67.5: "to your left"
    default: "behind you"
    }
  }
}
