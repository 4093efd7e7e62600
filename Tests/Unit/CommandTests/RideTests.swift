import Cryptography
import Domain
import Encoding
import Glibc
import MQTT
import StepController
import StepProtocol
import Synchronization
import SystemIO
import Terminal
import TestSupport
import Testing

@testable import StepdConfiguration

/// What riders type, with a real broker and a vehicle that is played.
@Suite("stepctl open, stop and status", .enabled(if: Mosquitto.isInstalled, "mosquitto is not installed"))
struct RideTests {
  private let shell: Shell
  private let broker: Mosquitto
  private let vehicle: PlayedVehicle

  init() throws {
    var shell = try Shell()
    // Certificates and tokens are looked at with the machine's clock too.
    shell.now = UnixTime(microseconds: WallClock.microseconds)
    let car = shell.path("car")
    let port = try Port.unused()
    try #require(
      shell.types("provision", "vehicle", car, "--port", "\(port)", "--uuid", "\(Shell.vehicle)").ending
        == .status(.done))
    try #require(shell.types("provision", "token", car, "--rider", "anna").ending == .status(.done))
    shell.environment["STEPCTL_VEHICLE"] = "\(car)/riders/anna/vehicle.toml"
    shell.environment["STEPCTL_TIMEOUT"] = "15"
    var frames: [(time: Double, side: Side, rssi: Int8?)] = []
    for number in 0..<40 {
      let time = Double(number) * 0.2
      frames += [(time, .left, -45), (time + 0.1, .right, -85)]
    }
    shell.environment["STEPCTL_RADIO"] = "btsnoop:\(try shell.capture("left", frames))"
    self.shell = shell
    // Started by root, it becomes a user who has to reach the folder.
    chmod(Files.parent(of: car), 0o755)
    broker = try Mosquitto(configuration: "\(car)/mosquitto.conf", port: port)
    vehicle = try PlayedVehicle(ControllerSetup(reading: "\(car)/stepd.toml"))
  }

  private func steps(_ arguments: String...) throws -> [String] {
    try shell.types(arguments).objects.compactMap { $0["step"]?.string }
  }

  @Test("stop: every step of the token, or the one at a side; where each rests, in words and as JSON")
  func stops() throws {
    vehicle.plays { $0.positions = [StepID("left")!: .unknown] }
    let one = shell.types("stop", "--side", "left")
    #expect(one.ending == .status(.done))
    #expect(one.output == "the left step is at rest: somewhere between open and closed\n")
    #expect(one.notes.count == 2 && one.notes[0] == "command  stop left, encrypted")
    #expect(vehicle.stopped == [StepID("left")!])
    let all = shell.types("stop", "--quiet")
    #expect(Set(all.lines) == [String(one.output.dropLast()), "the right step is at rest: closed"])
    #expect(all.errors == "")
    #expect(try Set(steps("stop", "--json")) == ["left", "right"])
    let object = try #require(try shell.types("stop", "--side", "right", "--json").objects.first)
    #expect(object["outcome"] == "done")
    #expect(object["position"] == "close")
    #expect(object["fault"] == .null)
    #expect(object["duration_s"] != nil)
  }

  @Test("stop: a step in a fault is at rest, and the fault is told")
  func stopsInFault() throws {
    vehicle.plays { $0.fault = .obstructed }
    #expect(shell.types("stop", "--side", "left").output == "the left step is at rest: closed; fault: obstructed\n")
    #expect(try shell.types("stop", "--side", "left", "--json").objects.first?["fault"] == "obstructed")
  }

  @Test("stop: a refusal ends with 5, and each step has its own")
  func refused() throws {
    vehicle.plays { $0.refusals = [StepID("right")!: Refusal(.tokenExpired)] }
    let ended = shell.types("stop")
    #expect(ended.ending == .status(.refused))
    #expect(ended.lines == ["the left step is at rest: closed"])
    let line = "the vehicle refused (token_expired): the token has expired; ask the operator for a new one"
    #expect(ended.notes.contains("answer   right: \(line)"))
    #expect(ended.notes.last == "stepctl: error: \(line)")
    let objects = try shell.types("stop", "--json").objects
    let object = try #require(objects.first { $0["outcome"] == "refused" })
    #expect(object["step"] == "right" && object["refusal"] == "token_expired" && object["retry"] == false)
    #expect(objects.count == 2)
  }

  @Test("stop: where no answer comes, the step may still move; where nothing could be sent, nothing was stopped")
  func unanswered() throws {
    var shell = shell
    // Enough for what is sent, also on a busy machine.
    shell.environment["STEPCTL_TIMEOUT"] = "5"
    vehicle.plays { $0.isDeafToStops = true }
    let doubt = shell.types("stop", "--side", "left", "--json")
    #expect(doubt.ending == .status(.unconfirmed))
    #expect(
      doubt.errors.hasSuffix(
        """
        stepctl: error: no confirmation came in time: the left step may still move
        hint: look at it, and run `stepctl stop` again

        """))
    let told = try #require(try doubt.objects.first)
    #expect(try doubt.objects.count == 1)
    #expect((told["outcome"], told["step"], told["exit"]) == ("unconfirmed", "left", 6))
    vehicle.leaves()
    let silent = shell.types("stop", "--side", "left")
    #expect(silent.ending == .status(.unavailable))
    #expect(
      silent.errors == """
        stepctl: error: the vehicle does not answer; the step was not stopped
        hint: the broker says that the vehicle's controller is offline

        """)
    broker.stop()
    let gone = shell.types("stop")
    #expect(gone.ending == .status(.unavailable))
    #expect(gone.notes.contains { $0.hasPrefix("stepctl: error: cannot connect to the broker") })
    #expect(gone.notes.last?.hasPrefix("hint: ") == true)
  }

  @Test("open: the chain, the outcome as JSON, and what a rider is told of a step that was stopped")
  func opens() throws {
    let open = shell.types("open", "--side", "left")
    #expect(open.ending == .status(.done))
    #expect(open.output == "the left step is open\n")
    #expect(
      open.notes.map { String($0.prefix { $0 != " " }) } == ["proof", "token", "broker", "command", "answer", "time"])
    vehicle.plays { $0.end = .unknown }
    let stopped = shell.types("open", "--side", "facing", "--json", "-q")
    #expect(stopped.ending == .status(.unconfirmed))
    let told = try #require(try stopped.objects.first)
    #expect(try stopped.objects.count == 1)
    #expect((told["outcome"], told["step"], told["may_have_moved"]) == ("unconfirmed", "left", true))
    #expect(
      stopped.errors == """
        stepctl: error: the left step came to rest somewhere between open and closed
        hint: somebody stopped or reversed it; `stepctl status` says where it is

        """)
    vehicle.plays { $0.refusals = [StepID("left")!: Refusal(.reserved)] }
    let reserved = shell.types("close", "--side", "left")
    #expect(reserved.ending == .status(.refused))
    #expect(
      reserved.notes.suffix(2) == [
        """
        stepctl: error: the vehicle refused (reserved): somebody else has just opened the step, and only that rider may \
        close it now
        """, "hint: trying again can help",
      ])
    let elsewhere = shell.types("open", "--side", "right")
    #expect(elsewhere.ending == .status(.otherSide))
  }

  @Test("status: each step of the token, with its fault")
  func status() throws {
    vehicle.plays { $0.positions = [StepID("left")!: .open] }
    let ended = shell.types("status")
    #expect(ended.lines == ["left     open", "right    closed"])
    vehicle.plays { $0.fault = .vehicleMoving }
    #expect(
      shell.types("status").lines == ["left     open; fault: vehicle_moving", "right    closed; fault: vehicle_moving"])
  }
}

/// A vehicle that says what a test has it say, truly signed.
private final class PlayedVehicle: Sendable {
  struct Script {
    /// Closed, unless it says otherwise.
    var positions: [StepID: Position] = [:]
    var fault: Fault?
    /// Of everything but questions.
    var refusals: [StepID: Refusal] = [:]
    var isDeafToStops = false
    /// Where a motion ends; nil for where it should.
    var end: Position?
    fileprivate(set) var stopped: [StepID] = []
    fileprivate var isGone = false
    fileprivate var sequence: Int64 = 0
  }

  private let setup: ControllerSetup
  private let link: MQTTConnection
  private let epoch = randomBytes(Statement.epochSize)
  private let script = Mutex(Script())

  init(_ setup: ControllerSetup) throws {
    self.setup = setup
    link = try MQTTConnection(
      broker: setup.broker, subscriptions: setup.vehicle.steps.map { setup.topic.setPosition($0.id) },
      reconnecting: .never)
    try #require(try link.next(until: .now + .seconds(60)) == .connected)
    say(.online)
    try DetachedThread.start { [link, weak self] in
      while let event = try? link.next(until: nil) {
        if case .message(let message) = event { self?.answer(message.payload) }
      }
    }
  }

  deinit { link.close() }

  func plays(_ change: (inout Script) -> Void) { script.withLock { change(&$0) } }

  var stopped: [StepID] { script.withLock { $0.stopped } }

  /// As a controller that ends.
  func leaves() {
    plays { $0.isGone = true }
    say(.offline)
  }

  private func say(_ availability: Availability) {
    link.publish(topic: setup.topic.availability, payload: availability.payload, retain: true)
  }

  private func answer(_ payload: [UInt8]) {
    let received = ReceivedCommand(payload, controller: setup.keys.decryption, operatorKey: setup.keys.operatorKey)
    guard case .command(let command, _, _) = received else { return }
    let statement = script.withLock { script -> Statement? in
      if script.isGone { return nil }
      script.sequence += 1
      let outcome: Statement.Outcome
      var position = script.positions[command.step] ?? .close
      switch command.request {
      case .status:
        outcome = .challenge(
          .init(
            randomBytes(Statement.challengeSize),
            policy: PresencePolicy(methods: [.beacon], zone: .near, acceptsStatic: true)))
      case .stop(let epoch):
        guard !script.isDeafToStops, epoch == self.epoch else { return nil }
        script.stopped.append(command.step)
        outcome = script.refusals[command.step].map { .refused($0) } ?? .obeyed
      case .move(let move):
        outcome = script.refusals[command.step].map { .refused($0) } ?? .obeyed
        position = script.end ?? (move.target == .open ? .open : .close)
      }
      return Statement(
        vehicle: setup.vehicle.uuid, step: command.step, position: position,
        phase: script.fault == nil ? .idle : .fault, fault: script.fault, sequence: script.sequence, epoch: epoch,
        clock: 60_000 + script.sequence,
        answer: .init(command: CommandDigest(of: payload), nonce: command.nonce, outcome: outcome))
    }
    guard let statement else { return }
    link.publish(
      topic: setup.topic.status(command.step), payload: statement.payload(signedBy: setup.keys.signing), retain: false)
  }
}
