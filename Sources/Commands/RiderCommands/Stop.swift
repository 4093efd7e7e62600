public import ArgumentParser
import CommandParts
import Domain
import Encoding
import FileFormats
import Rider
import StepProtocol
import SystemIO
import Terminal

struct Stop: RequestCommand {
  static let configuration = CommandConfiguration(
    commandName: "stop",
    abstract: "Stop a step that moves, wherever you are.", usage: "stepctl stop [<options>] [left|right]")

  @Argument(
    help: ArgumentHelp(
      "Which step: left or right. Without it, every step that your token is for.", valueName: "left|right"))
  var place: Side?

  @Option(help: "The side as an option, in place of the argument.")
  var side: Side?

  @OptionGroup var way: ViaOptions
  @OptionGroup var vehicle: VehicleOptions
  @OptionGroup var timeout: TimeoutOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    if let place, let side, place != side {
      throw ValidationError("--side \(side.rawValue) contradicts \(place.rawValue).")
    }
  }

  var request: StopRequest {
    StopRequest(
      side: place ?? side, vehicle: vehicle.vehicle, timeout: timeout.given, via: way.via, output: output.choice)
  }
}

/// Stops the step at a side, or every step that the token is for.
struct StopRequest: Request {
  var side: Side?
  var vehicle: String?
  var timeout: TimeSpan?
  var via: ViaChoice?
  var output = OutputChoice()

  func run(in context: Context) throws {
    let started = Instant.now
    let console = output.console(context)
    let settings = try context.settings(vehicle: vehicle, timeout: timeout?.text)
    let file = try VehicleFile(reading: settings.chosenVehicleFile(context))
    let interruption = try context.interruption()
    // A stop that can be sent is sent at once. Other access is fetched only if this one is of no use.
    var access = try CurrentAccess(file, context, interruption, console, renewsEarly: false)
    var steps = try side.map { [try access.rider.vehicle.checkStep(at: $0).id] } ?? access.file.steps(of: access.rider)
    defer { console.progress.clear() }
    while true {
      var failures: [(step: StepID, error: RiderError)] = []
      do {
        let client = try RiderClient(
          access.rider, steps: steps, patience: settings.patience, loop: EventLoop(),
          via: settings.via(via, patience: .zero), preparation: access.preparation, interruption: interruption,
          detail: console.detail, trace: console.trace)
        defer { client.close() }
        try stop(steps, over: client, of: access.rider.vehicle, since: started, console) { failures.append(($0, $1)) }
        break
      } catch let failure as any Failure {
        let failed = Set(failures.map(\.step))
        if try access.isMended(after: failure) {
          // What was stopped rests. A request that did not begin has told nothing.
          if !failed.isEmpty { steps.removeAll { !failed.contains($0) } }
          continue
        }
        access.remember(failure)
        console.progress.clear()
        throw try told(failure, failures, of: steps, naming: settings.naming(file), console)
      }
    }
    console.note("time", "\(tenths(started.duration(to: .now).inSeconds)) s")
  }

  /// Stops the steps, and prints what the vehicle answers.
  ///
  /// - Parameter fail: gets each step that is not stopped, and why.
  private func stop(
    _ steps: [StepID], over client: RiderClient, of vehicle: Vehicle, since started: Instant, _ console: Console,
    fail: @escaping (StepID, RiderError) -> Void
  ) throws {
    let waiting = "waiting for the answer of \(printable(vehicle.name))"
    console.progress.show(waiting)
    try client.perform(steps.map { .stop($0) }) { step, update in
      console.progress.clear()
      switch update {
      case .commanded:
        console.note("command", "stop \(step), encrypted")
        console.progress.show(waiting)
      case .done(let statement):
        try print(statement, by: client.path, after: started.duration(to: .now).inSeconds, console)
      case .failed(let error): if !error.isInterruption { fail(step, error) }
      case .send, .answered, .call, .heard, .moving: break
      }
    }
  }

  /// Prints why steps were not stopped. The command ends with one error, which is not printed twice.
  private func told(
    _ failure: any Failure, _ failures: [(step: StepID, error: RiderError)], of steps: [StepID], naming name: String?,
    _ console: Console
  ) throws -> any Error {
    var doubts: Set<String> = []
    for (step, error) in failures {
      if case .refused = error, steps.count > 1 {
        console.note("answer", "\(step): \(error)")
      } else {
        doubts.insert(error.description)
      }
      if console.isJSON {
        try console.result(CommandFailure(error, naming: name).object([.init("step", .string(step.description))]))
      }
    }
    for doubt in doubts.subtracting([failure.description]).sorted() { console.note(doubt) }
    guard let error = failure as? RiderError, !error.isInterruption, !failures.isEmpty else { return failure }
    return Told(CommandFailure(error, naming: name))
  }

  private func print(
    _ statement: Statement, by path: RiderClient.Path, after duration: Double, _ console: Console
  ) throws {
    if console.isJSON {
      try console.result([
        "outcome": "done", "step": .string(statement.step.description),
        "position": .string(statement.position.rawValue),
        "fault": statement.fault.map { .string($0.rawValue) } ?? .null,
        "via": .string(path.rawValue), "duration_s": .rounded(duration, places: 3),
      ])
    } else {
      let fault = statement.fault.map { "; fault: \($0.rawValue)" } ?? ""
      try console.result("the \(statement.step) step is at rest: \(statement.position.state)\(fault)")
    }
  }
}

extension Side: ExpressibleByArgument {}

extension CommandFailure {
  fileprivate init(_ error: RiderError, naming vehicle: String?) {
    self.init(error.exitStatus, error.description, hint: error.hint(naming: vehicle), details: error.details)
  }
}

extension VehicleFile {
  /// The steps that the rider's token is for.
  func steps(of access: RiderAccess) throws(CommandFailure) -> [StepID] {
    let steps = access.ownSteps
    guard !steps.isEmpty else {
      throw CommandFailure(.configuration, "\(rider?.token ?? path): the token is for none of the vehicle's steps")
    }
    return steps
  }
}
