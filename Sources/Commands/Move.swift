import ArgumentParser
import Configuration
import Domain
import Encoding
import Rider
import StepProtocol
import SystemIO
import Terminal

struct Open: MoveCommand {
  static let target = Command.Move.Target.open
  static let configuration = CommandConfiguration(
    commandName: "open",
    abstract: "Open the step that you are standing in front of.", usage: "stepctl open [<options>] --side <side>")
  @OptionGroup var move: MoveOptions
}

struct Close: MoveCommand {
  static let target = Command.Move.Target.close
  static let configuration = CommandConfiguration(
    commandName: "close",
    abstract: "Close the step that you are standing in front of.", usage: "stepctl close [<options>] --side <side>")
  @OptionGroup var move: MoveOptions
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
protocol MoveCommand: ContextCommand {
  static var target: Command.Move.Target { get }
  var move: MoveOptions { get }
}

extension MoveCommand {
  func run(in context: Context) throws {
    let console = move.output.console(context)
    let settings = try move.presence.settings(context, vehicle: move.vehicle.vehicle)
    let access = try VehicleFile(reading: settings.vehicleFile()).riderAccess()
    if let side = move.side.side { try access.vehicle.checkStep(at: side) }
    let interruption = try context.interruption()
    let started = ContinuousClock.now
    let loop = try EventLoop()
    let search = try PresenceSearch(move.presence.searches(access.vehicle, settings))
    defer { search.close() }
    do {
      let progress = SearchProgress(access.vehicle, console)
      let finding: Finding
      do {
        defer { progress.clear() }
        finding = try search.find(on: loop, interruption, tell: progress.show)
      }
      let sighting = try move.sighting(
        FindingReport(vehicle: access.vehicle, finding: finding, began: started), console)
      let step = sighting.step.id

      let client = try RiderClient(
        access, steps: [step], patience: settings.patience, loop: loop, interruption: interruption,
        detail: console.detail)
      defer { client.close() }
      console.note("token", TokenReport(access.token, at: context.seconds).line)
      console.note("broker", "\(access.broker), TLS")
      let statement = try client.perform([.move(Self.target, sighting)]) { _, update in
        switch update {
        case .commanded:
          console.note("command", "\(Self.target) \(step), encrypted, good for \(StepRequest.deadline / 1000) s")
        case .moving: console.note("answer", "moving")
        case .done(let statement): console.note("answer", statement.position.state)
        case .answered(_, let policy): console.detail("the vehicle accepts \(policy.summary)")
        case .send, .failed: break
        }
      }[0]
      let duration = started.duration(to: .now).inSeconds
      console.note("time", "\(tenths(duration)) s")
      try move.print(sighting, statement, after: duration, console)
    } catch let failure as any Failure {
      try console.outcome(of: failure)
      throw failure
    }
  }
}

extension MoveOptions {
  /// The sighting, at the side that the rider asked for.
  fileprivate func sighting(_ report: FindingReport, _ console: Console) throws -> Sighting {
    switch report.finding {
    case .undecided(let location, let radio):
      throw report.notLocated(FindingReport.advice(report.vehicle, location, radio))
    case .sighted(let sighting):
      console.note("proof", sighting.summary)
      let step = sighting.step
      if let side = side.side, side != step.side {
        throw CommandFailure(
          .otherSide, "you are at the \(step.id) step, not at the \(side.rawValue) one; nothing was sent",
          hint: "go to the \(side.rawValue) side, or use --side facing",
          details: [.init("step", .string(step.id.description))])
      }
      return sighting
    }
  }

  fileprivate func print(
    _ sighting: Sighting, _ statement: Statement, after duration: Double, _ console: Console
  ) throws {
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
}

extension Vehicle {
  /// - Throws: where the vehicle has no step at a side.
  @discardableResult
  func checkStep(at side: Side) throws(CommandFailure) -> Step {
    guard let step = step(at: side) else {
      throw CommandFailure(.configuration, "\(name) has no step at the \(side.rawValue) side")
    }
    return step
  }
}

extension Console {
  /// Tells a link of the chain from the rider to the step: `answer   moving`
  func note(_ label: String, _ text: String) {
    note("\(styled(label.aligned(to: 8), .dim)) \(printable(text))")
  }

  /// Tells a program how a command ended that failed, where that is an outcome.
  func outcome(of failure: any Failure, _ members: [JSON.Member] = []) throws {
    guard isJSON, let outcome = failure.exitStatus.outcome else { return }
    try result(.object([.init("outcome", .string(outcome))] + members + failure.details))
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
