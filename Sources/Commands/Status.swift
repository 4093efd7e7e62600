import ArgumentParser
import Configuration
import Domain
import Encoding
import Glibc
import Rider
import StepProtocol
import SystemIO
import Terminal

struct Status: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Ask a vehicle how its steps stand.", usage: "stepctl status <options>")

  @Flag(help: "Keep going, and print every change.")
  var watch = false

  @OptionGroup var vehicle: VehicleOptions
  @OptionGroup var timeout: TimeoutOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let settings = try context.settings(vehicle: vehicle.vehicle, timeout: timeout.typed)
    let file = try VehicleFile(reading: settings.chosenVehicleFile(context))
    let interruption = try context.interruption()
    let access = try file.riderAccess(unlock: context.unlock(interruption))
    let steps = try file.steps(of: access)
    let loop = try EventLoop()
    let client = try RiderClient(
      access, steps: steps, patience: settings.patience, loop: loop, interruption: interruption,
      detail: console.detail, trace: console.trace)
    defer { client.close() }
    let waiting = "waiting for the answer of \(printable(access.vehicle.name))"
    // Where there is no line that could be taken away again, it is told only if it takes long.
    let notice = console.progress.isShown ? nil : loop.schedule(at: .now + .seconds(1)) { console.note(waiting) }
    defer { console.progress.clear() }

    var heard = context.clocks.wall()
    // Each step is asked by name: only the answer to one's own question is known to be fresh.
    func ask(_ step: StepID) throws -> Statement {
      console.progress.show(waiting)
      let statement = try client.status(of: step).statement
      notice?.cancel()
      heard = context.clocks.wall()
      try print(statement, context, console)
      return statement
    }
    var newest: [StepID: Statement] = [:]
    let answered = LastAnswer(of: file.vehicle.uuid, context.folders)
    do {
      for step in steps { newest[step] = try ask(step) }
    } catch RiderError.noAnswer(let isOffline) {
      if let time = answered?.time { try printSilence(since: time, steps, context, console) }
      throw RiderError.noAnswer(isOffline: isOffline)
    }
    answered?.note(context.clocks.wall())
    // Whether the controller was silent when it was asked last, and whether the broker says that it is there all the
    // same.
    var (isSilent, isToBeAsked) = (false, false)
    while watch {
      console.progress.show("waiting for changes")
      if !isToBeAsked {
        try client.watch { answer in
          let statement = answer.statement
          guard let known = newest[statement.step] else { return true }
          // Another run of the controller, or an old statement that somebody has kept: the controller will tell.
          if statement.epoch != known.epoch { return false }
          if statement.sequence > known.sequence {
            heard = context.clocks.wall()
            newest[statement.step] = statement
            if !statement.hasState(of: known) {
              try print(statement, context, console)
              console.progress.show("waiting for changes")
            }
          }
          return true
        }
      }
      do {
        for step in steps { newest[step] = try ask(step) }
        (isSilent, isToBeAsked) = (false, false)
      } catch RiderError.noAnswer(let isOffline) {
        // An old truth is none: it is said what is not known, and since when.
        if !isSilent { try printSilence(since: heard, steps, context, console) }
        (isSilent, isToBeAsked) = (true, !isOffline)
      }
    }
  }

  private func printSilence(
    since heard: UnixTime, _ steps: [StepID], _ context: Context, _ console: Console
  ) throws {
    let now = context.clocks.wall()
    let begin = watch ? "\(timeOfDay(now))  " : ""
    console.progress.clear()
    for step in steps {
      try console.isJSON
        ? console.result([
          "time_s": .rounded(Double(now.microseconds) / 1e6, places: 3), "step": .string(step.description),
          "position": .null, "phase": "no_answer", "fault": .null,
          "since_s": .rounded(Double(heard.microseconds) / 1e6, places: 3),
        ])
        : console.result(
          "\(begin)\(step.description.aligned(to: 8)) no answer since \(moment(heard, now))")
    }
  }

  /// A time of day, and the date where that is another one.
  private func moment(_ time: UnixTime, _ now: UnixTime) -> String {
    let (then, today) = (dateAndTime(time.microseconds / 1_000_000), dateAndTime(now.microseconds / 1_000_000))
    return then.prefix(10) == today.prefix(10) ? String(timeOfDay(time).prefix(8)) : then
  }

  private func print(_ statement: Statement, _ context: Context, _ console: Console) throws {
    let now = context.clocks.wall()
    console.progress.clear()
    if console.isJSON {
      try console.result(
        .object(
          [
            .init("time_s", .rounded(Double(now.microseconds) / 1e6, places: 3)),
            .init("step", .string(statement.step.description)),
            .init("position", .string(statement.position.rawValue)),
            .init("phase", .string(statement.phase.rawValue)),
            .init("fault", statement.fault.map { .string($0.rawValue) } ?? .null),
          ] + (statement.watch.map { [.init("watch", .string($0.rawValue))] } ?? [])))
    } else {
      let state =
        switch statement.phase {
        case .idle: statement.position.state
        case .moving: "moving, was \(statement.position.state)"
        case .fault: "\(statement.position.state); fault: \(statement.fault?.rawValue ?? "unknown")"
        case .other(let word): "\(word), was \(statement.position.state)"
        }
      let time = watch ? "\(timeOfDay(now))  " : ""
      let road = statement.watch.map { "; traffic \($0.rawValue)" } ?? ""
      try console.result("\(time)\(statement.step.description.aligned(to: 8)) \(state)\(road)")
    }
  }
}

/// When a vehicle answered this user's `status` last: the time of an empty file.
private struct LastAnswer {
  private let path: String

  init?(of vehicle: UUID, _ folders: ConfigurationFolders) {
    guard let state = folders.state else { return nil }
    path = "\(state)/answered/\(vehicle)"
  }

  var time: UnixTime? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return UnixTime(microseconds: Int64(status.st_mtim.tv_sec) * 1_000_000 + Int64(status.st_mtim.tv_nsec) / 1000)
  }

  /// A courtesy: where it cannot be noted, nothing is said later.
  func note(_ time: UnixTime) {
    guard (try? Files.createFolder(Files.parent(of: path), mode: 0o700)) != nil,
      let file = try? Descriptor.open(path, O_WRONLY | O_CREAT, mode: 0o600)
    else { return }
    let (seconds, rest) = time.microseconds.quotientAndRemainder(dividingBy: 1_000_000)
    let stamp = timespec(tv_sec: time_t(seconds), tv_nsec: Int(rest) * 1000)
    futimens(file.number, [stamp, stamp])
  }
}

extension Statement {
  /// What the vehicle knows of the road, if it said so.
  fileprivate var watch: Watch? {
    if case .challenge(let challenge)? = answer?.outcome { challenge.watch } else { nil }
  }

  fileprivate func hasState(of other: Statement) -> Bool {
    (position, phase, fault) == (other.position, other.phase, other.fault)
  }
}
