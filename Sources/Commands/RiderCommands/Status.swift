import ArgumentParser
import CommandParts
import Domain
import Encoding
import FileFormats
import Glibc
import Rider
import StepProtocol
import SystemIO
import Terminal
import UserSettings

struct Status: RequestCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Ask a vehicle how its steps stand.", usage: "stepctl status [<options>] [<vehicle>]")

  @Flag(help: "Keep going, and print every change.")
  var watch = false

  @OptionGroup var way: ViaOptions
  @OptionGroup var vehicle: NamedVehicleOptions
  @OptionGroup var timeout: TimeoutOptions
  @OptionGroup var output: OutputOptions

  var request: StatusRequest {
    StatusRequest(
      isWatched: watch, vehicle: vehicle.vehicle, timeout: timeout.given, via: way.via, output: output.choice)
  }

  func validate() throws {
    if watch, let via = way.via, via != .auto, via != .network {
      throw ValidationError("--watch needs the network: over Bluetooth a vehicle does not report changes by itself.")
    }
  }
}

/// Asks a vehicle how its steps stand, once or for as long as it is watched.
struct StatusRequest: Request {
  var isWatched = false
  var vehicle: String?
  var timeout: TimeSpan?
  var via: ViaChoice?
  var output = OutputChoice()

  func run(in context: Context) throws {
    let console = output.console(context)
    let settings = try context.settings(vehicle: vehicle, timeout: timeout?.text)
    let interruption = try context.interruption()
    let file = try settings.chosenVehicleFile(context, interruption, console)
    var access = try CurrentAccess(file, context, interruption, console)
    let loop = try EventLoop()
    let lines = StatusLines(context, console, hasTimes: isWatched)
    let last = LastAnswer(of: file.vehicle.uuid, context.folders)
    let answers = StatusAnswers(lines, last, of: file.vehicle.name, at: context.clocks.wall())
    defer { answers.disconnect() }
    defer { console.progress.clear() }
    // Progress can be cleared only on a terminal. Elsewhere only a long wait deserves a line.
    answers.notice = console.progress.isShown ? nil : loop.schedule(at: .now + .seconds(1)) { answers.noteWait() }
    var pause = Self.firstPause
    while true {
      do {
        if !answers.isConnected {
          let steps = try access.file.steps(of: access.rider)
          let client = try RiderClient(
            access.rider, steps: steps, patience: settings.patience, loop: loop,
            via: settings.via(isWatched ? .network : via), preparation: access.preparation, interruption: interruption,
            detail: console.detail, trace: console.trace)
          answers.connect(over: client, steps)
        }
        try answers.next()
        guard isWatched else { return }
        pause = Self.firstPause
      } catch let failure as any Failure {
        answers.disconnect()
        if try access.isMended(after: failure) { continue }
        access.remember(failure)
        guard answers.hasAnswered, isWatched, failure.exitStatus == .unavailable else { throw failure }
        try answers.lose(failure)
        if try waitReadable([interruption.number], until: .now + pause)[0] { throw Interrupted() }
        pause = min(pause * 2, Self.longestPause)
      }
    }
  }

  /// How long a watch waits before it connects again: the first time, and at most.
  private static let (firstPause, longestPause): (Duration, Duration) = (.seconds(1), .seconds(30))
}

/// The newest statement of each step, and when the vehicle last answered.
private final class StatusAnswers {
  /// Reports a slow answer; the first answer cancels it.
  var notice: Registration?
  private(set) var hasAnswered = false

  private var client: RiderClient?
  private var steps: [StepID] = []
  private let lines: StatusLines
  private let last: LastAnswer?
  private let waiting: String
  private var newest: [StepID: Statement] = [:]
  private var heard: UnixTime
  /// Whether the next thing is to wait for changes, and not to ask.
  private var listens = false
  /// Whether the user already knows that the vehicle does not answer.
  private var isSilent = false

  init(_ lines: StatusLines, _ last: LastAnswer?, of vehicle: String, at start: UnixTime) {
    (self.lines, self.last, heard) = (lines, last, start)
    waiting = "waiting for the answer of \(printable(vehicle))"
  }

  var isConnected: Bool { client != nil }

  /// Uses a new connection. The next thing is to ask.
  func connect(over client: RiderClient, _ steps: [StepID]) {
    (self.client, self.steps) = (client, steps)
  }

  func disconnect() {
    client?.close()
    client = nil
    listens = false
  }

  func noteWait() { lines.console.note(waiting) }

  /// Waits for changes, and asks again when only that can tell the state of the steps.
  func next() throws {
    guard let client else { return }
    if listens { try printChanges(client) }
    do {
      try ask(client)
      (listens, isSilent, hasAnswered) = (true, false, true)
    } catch RiderError.noAnswer(let isOffline) {
      guard hasAnswered else {
        try printLastAnswer()
        throw RiderError.noAnswer(isOffline: isOffline)
      }
      try tellSilence()
      listens = isOffline
    }
  }

  /// Asks for each step by name, and prints the answer. Only the answer to our own question is known to be fresh.
  private func ask(_ client: RiderClient) throws {
    for step in steps {
      lines.console.progress.show(waiting)
      let statement = try client.status(of: step).statement
      notice?.cancel()
      arrived(statement)
      try lines.print(statement, by: client.path)
    }
    last?.note(heard)
  }

  /// Prints changes until only a new question can tell the state of the steps: after a restart of the controller, after
  /// a replayed old statement, or when the broker reports that the controller has come or gone.
  private func printChanges(_ client: RiderClient) throws {
    let progress = lines.console.progress
    progress.show("waiting for changes")
    try client.watch { [self] answer in
      let statement = answer.statement
      guard let known = newest[statement.step] else { return true }
      if statement.epoch != known.epoch { return false }
      guard statement.sequence > known.sequence else { return true }
      arrived(statement)
      last?.note(heard)
      if !statement.hasState(of: known) {
        try lines.print(statement, by: client.path)
        progress.show("waiting for changes")
      }
      return true
    }
  }

  /// The connection is lost, and will be made again.
  func lose(_ failure: any Failure) throws {
    if !isSilent { lines.console.note("\(printable(failure.description)); connecting again") }
    try tellSilence()
  }

  /// Says once that nothing is known any more.
  private func tellSilence() throws {
    if !isSilent { try lines.printSilence(since: heard, steps) }
    isSilent = true
  }

  /// Says when each silent step was last heard, if an earlier run recorded it.
  private func printLastAnswer() throws {
    guard let time = last?.time else { return }
    try lines.printSilence(since: time, steps.filter { newest[$0] == nil })
  }

  private func arrived(_ statement: Statement) {
    heard = lines.context.clocks.wall()
    newest[statement.step] = statement
  }
}

/// A step's state, for people and for programs.
private struct StatusLines {
  let context: Context
  let console: Console
  private let hasTimes: Bool

  init(_ context: Context, _ console: Console, hasTimes: Bool) {
    (self.context, self.console, self.hasTimes) = (context, console, hasTimes)
  }

  func printSilence(since heard: UnixTime, _ steps: [StepID]) throws {
    let now = context.clocks.wall()
    let begin = hasTimes ? "\(timeOfDay(now))  " : ""
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

  /// A time of day, with the date if it is not today.
  private func moment(_ time: UnixTime, _ now: UnixTime) -> String {
    let (then, today) = (dateAndTime(time.microseconds / 1_000_000), dateAndTime(now.microseconds / 1_000_000))
    return then.prefix(10) == today.prefix(10) ? String(timeOfDay(time).prefix(8)) : then
  }

  func print(_ statement: Statement, by path: RiderClient.Path) throws {
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
            .init("via", .string(path.rawValue)),
          ] + (statement.watch.map { [.init("watch", .string($0.rawValue))] } ?? [])))
    } else {
      let state =
        switch statement.phase {
        case .idle: statement.position.state
        case .moving: "moving, was \(statement.position.state)"
        case .fault: "\(statement.position.state); fault: \(statement.fault?.rawValue ?? "unknown")"
        case .other(let word): "\(word), was \(statement.position.state)"
        }
      let time = hasTimes ? "\(timeOfDay(now))  " : ""
      let road = statement.watch.map { "; traffic \($0.rawValue)" } ?? ""
      try console.result("\(time)\(statement.step.description.aligned(to: 8)) \(state)\(road)")
    }
  }
}

/// When a vehicle last answered this user's `status`: the modification time of an empty file.
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

  /// A convenience: if this cannot be recorded, a later run says nothing.
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
  /// What the vehicle knows of the road, if it reported it.
  fileprivate var watch: Watch? {
    if case .challenge(let challenge)? = answer?.outcome { challenge.watch } else { nil }
  }

  fileprivate func hasState(of other: Statement) -> Bool {
    (position, phase, fault) == (other.position, other.phase, other.fault)
  }
}
