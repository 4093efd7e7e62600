import ArgumentParser
import CommandParts
import Domain
import Encoding
import FileFormats
import Rider
import StepProtocol
import SystemIO
import Terminal

struct Stop: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "stop",
    abstract: "Stop a step that moves, wherever you are.", usage: "stepctl stop [<options>] [left|right]")

  @Argument(
    help: ArgumentHelp(
      "Which step: left or right. Without it, every step that your token is for.", valueName: "left|right"))
  var place: Choice?

  @Option(help: "The side as an option, in place of the argument.")
  var side: Choice?

  enum Choice: String, ExpressibleByArgument, CaseIterable {
    case left, right

    var side: Side { self == .left ? .left : .right }
  }

  @OptionGroup var vehicle: VehicleOptions
  @OptionGroup var timeout: TimeoutOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if let place, let side, place != side {
      throw ValidationError("--side \(side.rawValue) contradicts \(place.rawValue).")
    }
  }

  func run(in context: Context) throws {
    let started = Instant.now
    let console = output.console(context)
    let settings = try context.settings(vehicle: vehicle.vehicle, timeout: timeout.typed)
    let file = try VehicleFile(reading: settings.chosenVehicleFile(context))
    let interruption = try context.interruption()
    let preparation = try file.tlsPreparation()
    let access = try file.riderAccess(unlock: context.unlock(interruption))
    let steps = try (place ?? side).map { [try access.vehicle.checkStep(at: $0.side).id] } ?? file.steps(of: access)
    let client = try RiderClient(
      access, steps: steps, patience: settings.patience, loop: EventLoop(), preparation: preparation,
      interruption: interruption, detail: console.detail, trace: console.trace)
    defer { client.close() }
    let progress = console.progress
    defer { progress.clear() }
    let waiting = "waiting for the answer of \(printable(access.vehicle.name))"
    progress.show(waiting)
    let name = settings.naming(file)
    /// Errors that were not printed as an answer.
    var doubts: Set<String> = []
    do {
      try client.perform(steps.map { .stop($0) }) { step, update in
        progress.clear()
        switch update {
        case .commanded:
          console.note("command", "stop \(step), encrypted")
          progress.show(waiting)
        case .done(let statement): try print(statement, after: started.duration(to: .now).inSeconds, console)
        case .failed(let error):
          guard !error.isInterruption else { break }
          if case .refused = error, steps.count > 1 {
            console.note("answer", "\(step): \(error)")
          } else {
            doubts.insert(error.description)
          }
          if console.isJSON {
            let failure = CommandFailure(error, naming: name)
            try console.result(failure.object([.init("step", .string(step.description))]))
          }
        case .send, .answered, .call, .heard, .moving: break
        }
      }
    } catch let error as RiderError where !error.isInterruption {
      let failure = CommandFailure(error, naming: name)
      progress.clear()
      // The command ends with one error. Other failures are printed before.
      for doubt in doubts.subtracting([failure.description]).sorted() { console.note(doubt) }
      throw Told(failure)
    }
    console.note("time", "\(tenths(started.duration(to: .now).inSeconds)) s")
  }

  private func print(_ statement: Statement, after duration: Double, _ console: Console) throws {
    if console.isJSON {
      try console.result([
        "outcome": "done", "step": .string(statement.step.description),
        "position": .string(statement.position.rawValue),
        "fault": statement.fault.map { .string($0.rawValue) } ?? .null,
        "duration_s": .rounded(duration, places: 3),
      ])
    } else {
      let fault = statement.fault.map { "; fault: \($0.rawValue)" } ?? ""
      try console.result("the \(statement.step) step is at rest: \(statement.position.state)\(fault)")
    }
  }
}

extension CommandFailure {
  fileprivate init(_ error: RiderError, naming vehicle: String?) {
    self.init(error.exitStatus, error.description, hint: error.hint(naming: vehicle), details: error.details)
  }
}

extension VehicleFile {
  /// The steps that the rider's token is for.
  func steps(of access: RiderAccess) throws(CommandFailure) -> [StepID] {
    let steps = access.vehicle.steps.map(\.id).filter(access.token.steps.contains)
    guard !steps.isEmpty else {
      throw CommandFailure(.configuration, "\(rider?.token ?? path): the token is for none of the vehicle's steps")
    }
    return steps
  }
}
