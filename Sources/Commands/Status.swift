import ArgumentParser
import Configuration
import Domain
import Rider
import StepProtocol
import Encoding
import SystemIO
import Terminal

struct Status: ContextCommand {
  static let configuration = CommandConfiguration(
    abstract: "Ask a vehicle how its steps stand.", usage: "stepctl status <options>")

  @Flag(help: "Keep going, and print every change.")
  var watch = false

  @OptionGroup var vehicle: VehicleOptions
  @OptionGroup var timeout: TimeoutOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let settings = try context.settings(vehicle: vehicle.vehicle, timeout: timeout.timeout)
    let file = try VehicleFile(reading: settings.vehicleFile())
    let access = try file.riderAccess()
    let interruption = try context.interruption()
    let session = try RiderSession(
      access, steps: access.vehicle.steps, patience: settings.patience, interruption: interruption, console: console)
    defer { session.close() }

    let steps = access.vehicle.steps.filter { session.token.steps.contains($0.id) }
    guard !steps.isEmpty else {
      throw CommandFailure(.configuration, "\(file.path): the token is for none of the vehicle's steps")
    }
    // Each step is asked by name: only the answer to one's own command is known to be fresh.
    var newest: [StepID: Statement] = [:]
    for step in steps { newest[step.id] = try ask(session, step, settings, console) }
    while watch {
      let statement = try session.next(until: nil).statement
      guard let step = access.vehicle.step(statement.step), let known = newest[step.id] else { continue }
      if statement.epoch != known.epoch {
        // Another run of the controller, or an old statement that somebody has kept: the controller will tell.
        for step in newest.keys.compactMap(access.vehicle.step) {
          newest[step.id] = try ask(session, step, settings, console)
        }
      } else if statement.sequence > known.sequence {
        newest[step.id] = statement
        if !statement.hasState(of: known) { try print(statement, console) }
      }
    }
  }

  private func ask(
    _ session: RiderSession, _ step: Step, _ settings: Settings, _ console: Console
  ) throws -> Statement {
    let statement = try session.ask(step, until: .now + settings.patience).0.statement
    try print(statement, console)
    return statement
  }

  private func print(_ statement: Statement, _ console: Console) throws {
    let now = UnixTime(microseconds: WallClock.microseconds)
    if console.isJSON {
      try console.result([
        "time_s": .rounded(Double(now.microseconds) / 1e6, places: 3),
        "step": .string(statement.step.description),
        "position": .string(statement.position.rawValue),
        "phase": .string(statement.phase.rawValue),
        "fault": statement.fault.map { .string($0.rawValue) } ?? .null,
      ])
    } else {
      let state =
        switch statement.phase {
        case .idle: statement.position.state
        case .moving: "moving, was \(statement.position.state)"
        case .fault: "\(statement.position.state); fault: \(statement.fault?.rawValue ?? "unknown")"
        }
      let time = watch ? "\(timeOfDay(now))  " : ""
      try console.result("\(time)\(statement.step.description.aligned(to: 8)) \(state)")
    }
  }
}

extension Statement {
  fileprivate func hasState(of other: Statement) -> Bool {
    (position, phase, fault) == (other.position, other.phase, other.fault)
  }
}
