import Access
import ArgumentParser
import Bluetooth
import CommandParts
import Domain
import Encoding
import FileFormats
import MQTT
import Operator
import Positioning
import Rider
import RiderCommands
import StepController
import StepProtocol
import StepdConfiguration
import SystemIO
import Terminal
import Traffic
import TrafficFeed

struct ProvisionVehicle: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "vehicle",
    abstract: "Make a vehicle's keys, certificates and configuration.")

  @Argument(
    help: ArgumentHelp("The vehicle's folder; it is made if it is missing.", valueName: "dir"), completion: .directory)
  var folder: String

  @Option(help: "What people call the vehicle (default: the folder's name).")
  var name: String?

  @Option(help: "The vehicle's UUID (8-4-4-4-12 hexadecimal digits), which its beacons send (default: a random one).")
  var uuid: UUID?

  @Option(
    help:
      "The prefix of its MQTT topics: letters, digits, dots, hyphens, underscores, slashes (default: vehicles/UUID).")
  var topic: TopicPrefix?

  @Option(help: "The broker's host name or address, as riders reach it.")
  var host: BrokerHost = .localhost

  @Option(help: "The broker's port, 1 to 65535.")
  var port: UInt16 = Broker.standardPort

  @Option(
    name: .customLong("steps"),
    help: ArgumentHelp(
      "The steps: their sides, or id=side, joined by commas (default: left,right).", valueName: "steps"))
  var plan: StepPlan?

  @Option(help: "What moves the steps: simulated (writes motions to servo.jsonl), pwm or pca9685.")
  var servo: ServoKind = .simulated

  @Option(
    help: ArgumentHelp(
      "The radios that send the steps' beacons, with rotating minors: left=hci0, or hci0 for all (default: other devices).",
      valueName: "step=spec"))
  var beacon: [BeaconAdapter] = []

  @Option(
    name: .customLong("operator"),
    help: ArgumentHelp(
      "The operator whose vehicle it becomes: the folder that has operator/ (default: one of its own).",
      valueName: "folder"),
    completion: .directory)
  var operatorFolder: String?

  @Option(
    help: ArgumentHelp("The fleet's server, whose vehicle it becomes; run this on the vehicle.", valueName: "url"),
    transform: { try FleetAddress($0) })
  var fleet: FleetAddress?

  @Option(help: ArgumentHelp("The code that the fleet's operator gave: XXXX-XXXX-XXXX.", valueName: "code"))
  var code: EnrolmentCode?

  @OptionGroup var server: ServerOptions

  @Option(
    help: ArgumentHelp(
      "A traffic feed, wss://HOST[:PORT]/PATH: no step opens while something comes towards it.", valueName: "feed"),
    transform: { try FeedAddress($0) })
  var feed: FeedAddress?

  // A southern latitude begins with a hyphen.
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Where the vehicle stands for good, for --feed: latitude, longitude and heading (default: as gpsd says).",
      valueName: "place"))
  var at: ParkingPlace?

  @Option(
    help: ArgumentHelp(
      "The vehicle's public keys, as `provision keys` printed them on it: a file, or - (default: new keys, made here).",
      valueName: "file"),
    completion: .file())
  var keys: String?

  @Flag(help: "Replace the vehicle that is there, after its name was typed. Its riders then need new tokens.")
  var force = false

  // Commands of their own do this. These flags are refused, and the hint names the command.
  @Flag(help: .private) var relocate = false
  @Flag(help: .private) var renew = false
  @Flag(help: .private) var update = false
  @Flag(help: .private) var start = false

  @OptionGroup var input: InputOptions
  @OptionGroup var output: OutputOptions

  private var steps: [Step] { (plan ?? .leftAndRight).steps }

  func validate() throws {
    guard operatorFolder == nil && fleet == nil || host == .localhost && port == Broker.standardPort else {
      throw ValidationError("--operator and --fleet have a broker, and take neither --host nor --port.")
    }
    guard (fleet == nil) == (code == nil), fleet != nil || server.ca == nil else {
      throw ValidationError("--fleet and --code belong together, and --ca to them.")
    }
    guard fleet == nil || operatorFolder == nil && !force else {
      throw ValidationError("--fleet takes neither --operator nor --force.")
    }
    guard keys == nil || operatorFolder != nil && beacon.isEmpty else {
      throw ValidationError("--keys is for --operator, and goes without --beacon, whose secrets would be made here.")
    }
    try check(folder: folder)
    guard at == nil || feed != nil else { throw ValidationError("--at is for --feed.") }
    guard port > 0 else { throw ValidationError("--port takes 1 to 65535.") }
    _ = try beacon.adapters(of: steps.map(\.id))
  }

  func run(in context: Context) throws {
    for (flag, name) in [(relocate, "relocate"), (renew, "renew"), (update, "update"), (start, "start")] where flag {
      throw CommandFailure(
        .usage, "--\(name) is a command now", hint: "`\(shellCommand("stepctl", "provision", name, folder))`")
    }
    let console = output.console(context)
    let place = VehicleFolder(folder)
    let uuid = uuid ?? .random()
    // This cannot fail: the steps differ in every property.
    let vehicle = try! Vehicle(name: name ?? defaultName, uuid: uuid, steps: steps)
    let adapters = try beacon.adapters(of: steps.map(\.id))
    // A UUID has no character that is forbidden in a topic.
    let topic = topic ?? TopicPrefix("vehicles/\(uuid)")!
    let owner = try owner(context)
    if force { try confirmLoss(of: place, in: owner.place, context) }
    let summary = try place.provisionVehicle(
      VehiclePlan(
        vehicle: vehicle, topic: topic, servo: servo, beaconRadios: adapters,
        trafficGuard: feed.map { trafficGuard($0) }),
      of: owner, now: context.seconds, force: force)

    let obstacle = place.place.brokerObstacle
    if console.isJSON {
      try console.result(json(of: summary, adapters, topic, place, obstacle))
    } else {
      try console.result(text(of: summary, adapters, topic, place))
      note(adapters, place, console)
      if let obstacle { console.note(obstacle.description) }
      if let next = nextSteps(owner.place, place, obstacle) { console.note(next) }
    }
  }

  private func json(
    of summary: VehicleSummary, _ adapters: [StepID: RadioSpec], _ topic: TopicPrefix, _ place: VehicleFolder,
    _ obstacle: BrokerFile.Obstacle?
  ) -> JSON {
    .object([
      .init("name", .string(summary.vehicle.name)), .init("uuid", .string(summary.vehicle.uuid.description)),
      .init("topic", .string(topic.description)),
      .init(
        "beacons",
        .array(
          steps.compactMap { step in
            adapters[step.id].map { ["step": .string(step.id.description), "adapter": .string($0.description)] }
          })),
      .init("files", .array(summary.files.map { .string(place.path($0)) })),
      .init("operator_key", .string(summary.tokenKey.description)),
      .init("encryption_key", .string(summary.encryptionKey.description)),
      .init("signing_key", .string(summary.signingKey.description)),
      .init("certificates_end", .integer(summary.certificatesEnd)),
      .init(
        "broker_obstacle",
        obstacle.map { ["user": .string($0.user), "file": .string($0.file), "path": .string($0.path)] } ?? .null),
    ])
  }

  private func text(
    of summary: VehicleSummary, _ adapters: [StepID: RadioSpec], _ topic: TopicPrefix, _ place: VehicleFolder
  ) -> String {
    """
    \(printable(summary.vehicle.name)) is in \(place.path)
      uuid        \(summary.vehicle.uuid)
      steps       \(steps.map(Self.describe).joined(separator: " and "))
      topic       \(topic)
      beacons     \(describe(adapters))
      broker      \(summary.broker), certificates until \(dateAndTime(summary.certificatesEnd))
      operator    \(summary.tokenKey.grouped) (signs tokens)
    """
  }

  /// Says which parts of the vehicle must still be measured, found or repaired.
  private func note(_ adapters: [StepID: RadioSpec], _ place: VehicleFolder, _ console: Console) {
    if feed != nil {
      console.note(
        "measure the vehicle and its steps, and write their sizes into [guard] of \(place.path("stepd.toml"))")
    }
    if servo != .simulated {
      let command = shellCommand("stepd", "--config", place.path("stepd.toml"), "--servo", "\(steps[0].id)")
      console.note("on the vehicle, find the ends of each step's servo: \(command)")
    }
    if adapters.count > Set(adapters.values).count {
      console.note("one radio sends both beacons: they cannot tell the sides apart")
    }
  }

  /// What to type next; nil if nothing is left to do.
  ///
  /// - Parameters:
  ///   - fleet: the operator to whose vehicles this one was added.
  ///   - obstacle: why the broker cannot start yet.
  private func nextSteps(
    _ fleet: OperatorPlace?, _ place: VehicleFolder, _ obstacle: BrokerFile.Obstacle?
  ) -> String? {
    let controller = shellCommand("stepd", "--config", place.path("stepd.toml"))
    func broker(_ path: String, indent: String) -> String {
      (obstacle.map { "\($0.remedy)\n\(indent)" } ?? "") + shellCommand(Self.broker, "-c", "\(path)/mosquitto.conf")
    }
    if self.fleet != nil {
      return """

        Next:
          \(controller)
        The operator's keys are not in \(place.path), and no private key has left it.
        """
    }
    if let fleet {
      return """

        Next:
          reload the broker, or start it:
            \(broker(fleet.path, indent: "    "))
          bring \(place.path) to the vehicle, and there:
            \(controller)
          \(shellCommand("stepctl", "provision", "token", "\(fleet.path)/vehicles/\(place.name)", "--device", "REQUEST"))
        The operator's keys are not in \(place.path)\(keys == nil ? "" : ", nor are the vehicle's private keys").
        """
    }
    return """

      Next:
        \(broker(place.path, indent: "  ")) &
        \(controller) &
        \(shellCommand("stepctl", "provision", "token", place.path, "--rider", "NAME"))
      The keys in operator/ sign for the vehicle: keep them safe, and off the vehicle.
      """
  }

  private static func publicKeys(_ file: String, _ context: Context) throws -> VehicleKeys {
    let text =
      file == "-"
      ? try context.typed(atMost: AccessFile.maximumSize)
      : String(decoding: try Files.read(file, limit: VehicleKeys.maximumSize + 64), as: UTF8.self)
    let plain = text.filter { !$0.isWhitespace && $0 != "\u{FEFF}" }
    do throws(ProtocolError) { return try VehicleKeys(verifying: plain) } catch {
      throw CommandFailure(
        .badData, "\(file): not a vehicle's keys, or damaged ones: \(error)",
        hint: "`stepctl provision keys DIR` prints them, on the vehicle")
    }
  }

  private func owner(_ context: Context) throws -> VehicleOwner {
    if let operatorFolder {
      return .place(VehicleFolder(operatorFolder).place, try keys.map { try Self.publicKeys($0, context) })
    }
    guard let fleet, let code else { return .itself(BrokerAddress(host: host, port: port)) }
    let client = try server.client(at: fleet, context, context.interruption(), input)
    return .server { enrolment in
      try VehicleAdmission(client.enrol(enrolment.json(code: code.text, isNamed: name != nil)))
    }
  }

  /// Names the files of others that become worthless, and asks the user to type the vehicle's name.
  private func confirmLoss(of place: VehicleFolder, in fleet: OperatorPlace?, _ context: Context) throws {
    let known = try fleet?.record(of: place.name).loss(now: context.seconds)
    guard let loss = try known ?? place.loss(now: context.seconds) else { return }
    let console = Console(context)
    let replaced =
      loss.name.map { "\(printable($0)) and its keys" } ?? "what is in \(place.path), whose vehicle.toml cannot be read"
    console.note("this replaces \(replaced); these will be worthless:")
    let riders = loss.tokens.map { $0.riders.isEmpty ? "none" : printable($0.riders.joined(separator: ", ")) }
    console.note("  riders      \(riders ?? "unknown")")
    console.note("  tokens      \(loss.tokens.map { "\($0.count) that have not ended" } ?? "unknown")")
    console.note("  tags        \(loss.tags.map { "\($0) dynamic ones" } ?? "unknown")")
    console.note("the old files are kept, in \(place.path)/replaced-TIME")
    let whose = loss.name == nil ? "folder" : "vehicle"
    let answer = try input.questions(context, context.interruption()).ask("type the \(whose)'s name to replace it: ")
    guard answer == loss.name ?? place.name else {
      throw CommandFailure(.failure, "that is not the \(whose)'s name; nothing was changed")
    }
  }

  /// `left (major 1)`
  private static func describe(_ step: Step) -> String {
    let side = step.id.description == step.side.rawValue ? "" : "at the \(step.side.rawValue) side, "
    return "\(step.id) (\(side)major \(step.major))"
  }

  private func describe(_ adapters: [StepID: RadioSpec]) -> String {
    let senders = steps.compactMap { step in adapters[step.id].map { "\(step.id) with \($0)" } }
    return senders.isEmpty
      ? "other devices; see `stepctl provision beacon`" : "\(senders.joined(separator: ", ")), minors rotate"
  }

  /// Debian installs it in a folder outside the users' PATH.
  static let broker = ["/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto"].first(where: Files.exists) ?? "mosquitto"

  /// Dimensions of a car with the steps at the middle of its sides.
  private func trafficGuard(_ feed: FeedAddress) -> ControllerFile.Guard {
    let span = ControllerFile.StepSpan(from: 1.8, to: 2.8, reach: 0.4)
    return ControllerFile.Guard(
      feed: .init(address: feed, credentials: .init(authorities: nil, certificate: nil, key: nil)),
      receiver: at == nil ? GPSConnection.usual : nil,
      source: at.map { .given($0.position, error: TrafficGuard.survey, heading: $0.heading) }
        ?? .receiver(heading: nil),
      length: 4.6, width: 1.9, steps: Dictionary(uniqueKeysWithValues: steps.map { ($0.id, span) }))
  }

  private var defaultName: String {
    let last = folder.split(separator: "/").last.map(String.init) ?? ""
    return last.isEmpty || last == "." || last == ".." ? "vehicle" : last
  }
}
