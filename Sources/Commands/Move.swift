import ArgumentParser
import Bluetooth
import Configuration
import MQTT
import Ranging
import Domain
import Rider
import StepProtocol
import Encoding
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

/// Which step is meant. A side is a claim, with which the proof must agree.
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

/// `open` and `close`: proof, challenge, command, confirmation. Prints the chain as it goes.
struct Move {
  /// How far ahead of the controller's clock the deadline is set, milliseconds.
  private static let deadline: Int64 = 5_000
  /// How long after the deadline a first answer can still be on its way.
  private static let delay = Duration.seconds(2)
  /// The longest motion that a controller can be configured to allow.
  private static let longestMotion = Duration.seconds(62)

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
    } catch let failure as CommandFailure {
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

    let presence = try locate(access.vehicle, settings, interruption)
    let step = presence.step
    let session = try RiderSession(
      access, steps: [step], patience: settings.patience, interruption: interruption, console: console)
    defer { session.close() }
    note("token", TokenReport(session.token, at: context.seconds).line)
    note("broker", "\(access.broker.host):\(access.broker.port), TLS")

    let (answer, challenge) = try session.ask(step, until: .now + settings.patience)
    let command = Command.Move(
      target: target, epoch: answer.statement.epoch, challenge: challenge,
      deadline: answer.clock(at: .now) + Move.deadline, proof: presence.proof,
      proofTime: answer.clock(at: presence.found))
    guard let pending = session.send(.move(command), to: step) else {
      throw CommandFailure(.unavailable, "the connection to the broker was lost; nothing was sent")
    }
    note("command", "\(target.rawValue) \(step.id), encrypted, good for \(Move.deadline / 1000) s")
    let statement = try confirm(target, step, pending, session)
    note("time", "\(tenths(started.duration(to: .now).inSeconds)) s")
    try finish(presence, statement, since: started)
  }

  // MARK: - Proof

  private func locate(
    _ vehicle: Vehicle, _ settings: Settings, _ interruption: Interruption
  ) throws -> Presence {
    let report = try PresenceFinder(
      vehicle: vehicle, method: options.presence.by, settings: settings, codes: options.presence.codes.qr, saving: nil,
      interruption: interruption, console: console
    ).find()
    guard let presence = report.presence else {
      throw CommandFailure.notLocated(report.summary, hint: report.advice)
    }
    note("proof", presence.evidence)
    let step = presence.step
    if let side = options.side.side, side != step.side {
      throw CommandFailure(
        .otherSide, "you are at the \(step.id) step, not at the \(side.rawValue) one; nothing was sent",
        hint: "go to the \(side.rawValue) side, or use --side facing",
        details: [.init("step", .string(step.id.description))])
    }
    return presence
  }

  // MARK: - Confirmation

  /// Waits until a statement says what has become of the command. Whatever goes wrong from here on, the step may have
  /// moved.
  private func confirm(
    _ target: Command.Move.Target, _ step: Step, _ pending: RiderSession.Pending, _ session: RiderSession
  ) throws -> Statement {
    var limit = ContinuousClock.now + .milliseconds(Move.deadline) + Move.delay
    var isMoving = false
    while true {
      let statement: Statement
      do throws(RiderSession.Failure) {
        statement = try session.answer(to: pending, until: limit).statement
      } catch {
        let reason =
          switch error {
          case .interrupted: "interrupted after the command was sent"
          case .timedOut: "no confirmation came in time"
          case .connection(let error): "\(error) after the command was sent"
          case .system(let error): "\(error)"
          }
        throw unconfirmed(reason, step)
      }
      if case .refused(let code)? = statement.answer?.outcome { throw CommandFailure(code) }
      switch statement.phase {
      case .moving:
        // Once: the broker may send copies of it for as long as it likes.
        if isMoving { continue }
        isMoving = true
        note("answer", "moving")
        limit = .now + Move.longestMotion
      case .idle:
        guard statement.position.rawValue == target.rawValue else {
          throw unconfirmed("the controller says that the step is \(statement.position.rawValue)", step)
        }
        note("answer", statement.position.state)
        return statement
      case .fault:
        throw unconfirmed("the step stopped on its way (\(statement.fault?.rawValue ?? "fault"))", step)
      }
    }
  }

  private func unconfirmed(_ reason: String, _ step: Step) -> CommandFailure {
    CommandFailure(
      .unconfirmed, "\(reason): the \(step.id) step may have moved",
      hint: "look at it, or ask with `stepctl status`", details: [.init("step", .string(step.id.description))])
  }

  private func finish(
    _ presence: Presence, _ statement: Statement, since started: ContinuousClock.Instant
  ) throws {
    if console.isJSON {
      try console.result([
        "outcome": "done", "step": .string(presence.step.id.description),
        "position": .string(statement.position.rawValue), "method": .string(presence.proof.method.rawValue),
        "duration_s": .rounded(started.duration(to: .now).inSeconds, places: 3),
      ])
    } else {
      try console.result("the \(presence.step.id) step is \(statement.position.state)")
    }
  }

  private func note(_ label: String, _ text: String) {
    console.note("\(console.styled(label.aligned(to: 8), .dim)) \(printable(text))")
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
    default: nil
    }
  }
}
