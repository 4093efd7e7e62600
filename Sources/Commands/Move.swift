import ArgumentParser
import Configuration
import Domain
import Encoding
import Rider
import StepProtocol
import SystemIO
import Terminal

struct Open: ContextCommand {
  static let configuration = CommandConfiguration(
    abstract: "Open the step that you are standing in front of.", usage: "stepctl open [<options>] --side <side>")
  @OptionGroup var move: MoveOptions

  func run(in context: Context) throws { try Move(move, context).run(.open) }
}

struct Close: ContextCommand {
  static let configuration = CommandConfiguration(
    abstract: "Close the step that you are standing in front of.", usage: "stepctl close [<options>] --side <side>")
  @OptionGroup var move: MoveOptions

  func run(in context: Context) throws { try Move(move, context).run(.close) }
}

/// Which step is meant. A side is a claim, and the proof must agree with it.
enum SideChoice: String, ExpressibleByArgument, CaseIterable {
  case left, right, facing

  var side: Side? { Side(rawValue: rawValue) }
}

struct MoveOptions: ParsableArguments {
  @Option(help: "Which step: left, right, or the one that you are facing.")
  var side: SideChoice

  @OptionGroup var presence: PresenceOptions
  @OptionGroup var vehicle: VehicleOptions
  @OptionGroup var output: OutputOptions
}

/// `open` and `close`: find the step, prove it, command it, wait for the confirmation. Prints the chain as it goes.
struct Move {
  private let options: MoveOptions
  private let context: Context
  private let console: Console

  init(_ options: MoveOptions, _ context: Context) {
    self.options = options
    self.context = context
    console = options.output.console(context)
  }

  func run(_ target: Command.Move.Target) throws {
    do {
      try perform(target)
    } catch let failure as any Failure {
      if console.isJSON, let outcome = failure.exitStatus.outcome {
        try console.result(.object([.init("outcome", .string(outcome))] + failure.details))
      }
      throw failure
    }
  }

  private func perform(_ target: Command.Move.Target) throws {
    let settings = try options.presence.settings(context, vehicle: options.vehicle.vehicle)
    let access = try VehicleFile(reading: settings.vehicleFile()).riderAccess()
    if let side = options.side.side, access.vehicle.step(at: side) == nil {
      throw CommandFailure(.configuration, "\(access.vehicle.name) has no step at the \(side.rawValue) side")
    }
    let interruption = try context.interruption()
    let started = ContinuousClock.now
    let loop = try EventLoop()

    let search = try PresenceSearch(options.presence.searches(access.vehicle, settings))
    defer { search.close() }
    let sighting = try sighting(search.find(access.vehicle, on: loop, interruption, console))

    let client = try RiderClient(
      access, steps: [sighting.step.id], patience: settings.patience, loop: loop, interruption: interruption,
      detail: console.detail)
    defer { client.close() }
    note("token", TokenReport(access.token, at: context.seconds).line)
    note("broker", "\(access.broker), TLS")
    let statement = try client.move(target, sighting) { update in
      switch update {
      case .commanded:
        note("command", "\(target.rawValue) \(sighting.step.id), encrypted, good for \(StepRequest.deadline / 1000) s")
      case .moving: note("answer", "moving")
      case .done(let statement): note("answer", statement.position.state)
      case .answered(_, let policy): console.detail("the vehicle accepts \(policy.summary)")
      case .send, .failed: break
      }
    }
    let duration = started.duration(to: .now).inSeconds
    note("time", "\(tenths(duration)) s")
    try finish(sighting, statement, after: duration)
  }

  /// The sighting, at the side that the rider asked for.
  private func sighting(_ report: FindingReport) throws -> Sighting {
    switch report.finding {
    case .undecided(let location, let radio):
      throw report.notLocated(FindingReport.advice(report.vehicle, location, radio))
    case .sighted(let sighting):
      note("proof", sighting.summary)
      let step = sighting.step
      if let side = options.side.side, side != step.side {
        throw CommandFailure(
          .otherSide, "you are at the \(step.id) step, not at the \(side.rawValue) one; nothing was sent",
          hint: "go to the \(side.rawValue) side, or use --side facing",
          details: [.init("step", .string(step.id.description))])
      }
      return sighting
    }
  }

  private func finish(_ sighting: Sighting, _ statement: Statement, after duration: Double) throws {
    if console.isJSON {
      try console.result([
        "outcome": "done", "step": .string(sighting.step.id.description),
        "position": .string(statement.position.rawValue), "method": .string(sighting.method.rawValue),
        "duration_s": .rounded(duration, places: 3),
      ])
    } else {
      try console.result("the \(sighting.step.id) step is \(statement.position.state)")
    }
  }

  private func note(_ label: String, _ text: String) {
    console.note("\(console.styled(label.aligned(to: 8), .dim)) \(printable(text))")
  }
}

extension PresencePolicy {
  /// `beacon, nfc within near, copies count`
  fileprivate var summary: String {
    let words = ProofMethod.allCases.filter(methods.contains).map(\.rawValue).joined(separator: ", ")
    return "\(words) within \(zone.rawValue), copies \(acceptsStatic ? "count" : "do not count")"
  }
}

extension ExitStatus {
  /// The word for it in JSON; nil for what is no outcome of a command but a failure to give it.
  fileprivate var outcome: String? {
    switch self {
    case .notLocated: "not_located"
    case .otherSide: "other_side"
    case .refused: "refused"
    case .unconfirmed: "unconfirmed"
    case .done, .failure, .usage, .badData, .noInput, .unavailable, .inputOutput, .noPermission, .configuration: nil
    }
  }
}
