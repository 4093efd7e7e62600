import ArgumentParser
import Configuration
import Domain
import Encoding
import Glibc
import MQTT
import Provisioning
import StepProtocol
import SystemIO
import Terminal

struct ConfigImport: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Add a vehicle from its QR code or your operator's file.",
    usage: "stepctl config import [<options>] [<file>]")

  @Argument(
    help: ArgumentHelp(
      "What your operator gave you, a vehicle.toml, or a vehicle's code as text; - is standard input.",
      valueName: "file"),
    completion: .file())
  var file: String?

  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp(
      "Pictures of its codes (PNG, JPEG), - for standard input, or a camera: /dev/video0.",
      valueName: "file|-|device"),
    completion: .file(extensions: ["png", "jpg", "jpeg"]))
  var qr: [String] = []

  @Option(help: "What to call the vehicle (default: its own name, in letters that are easy to type).")
  var name: String?

  @Flag(name: .shortAndLong, help: "Trust it without asking.")
  var yes = false

  @OptionGroup var timeout: TimeoutOptions
  @OptionGroup var input: InputOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (file == nil) != qr.isEmpty else { throw ValidationError("Give either a file or --qr.") }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let settings = try context.settings(timeout: timeout.typed)
    let source = file.map(ImportSource.file) ?? .pictures(qr)
    let handover = try source.read(context, settings.patience, console.progress)
    let interruption = try context.interruption()
    let store = VehicleStore(settings.folders)
    let place = try store.place(for: handover, as: name)
    if yes { show(handover, place, console) } else { try confirm(handover, place, context, interruption) }
    try store.install(handover, at: place)

    let vehicle = handover.vehicleFile.vehicle
    let hasRider = handover.vehicleFile.rider != nil || place.known?.rider != nil
    if console.isJSON {
      try console.result([
        "name": .string(vehicle.name), "uuid": .string(vehicle.uuid.description),
        "operator_key": handover.operatorKey.map { .string($0.thumbprint.description) } ?? .null,
        "vehicle_file": .string(place.vehicleFile), "is_new": .bool(place.known == nil), "has_rider": .bool(hasRider),
      ])
      return
    }
    try console.result("\(printable(vehicle.name)) is in \(settings.folders.displayed(place.vehicleFile))")
    if !hasRider { console.note("you also need a token to move its steps; ask your operator for one") }
  }

  // MARK: - Trust

  private func confirm(
    _ handover: ImportedVehicle, _ place: VehicleStore.Place, _ context: Context, _ interruption: Interruption
  ) throws {
    guard input.noInput || context.input.isTerminal else {
      throw CommandFailure(
        .noInput, "cannot ask whether to trust this: standard input is not a terminal", hint: "use --yes to trust it")
    }
    // Nobody can trust what they do not see: it is shown also with -q.
    show(handover, place, Console(context))
    guard try input.questions(context, interruption).confirm("Trust it?", suggestion: false) else {
      throw CommandFailure(.failure, "not trusted; nothing was changed")
    }
  }

  private func show(_ handover: ImportedVehicle, _ place: VehicleStore.Place, _ console: Console) {
    let file = handover.vehicleFile
    console.note("vehicle   \(printable(file.vehicle.name))")
    console.note("          \(file.vehicle.uuid)")
    if let broker = file.broker { console.note("broker    \(printable(broker.host)):\(broker.port)") }
    if let key = handover.operatorKey?.thumbprint {
      // 43 characters, in two lines of a terminal of 80 columns.
      console.note("operator  \(key.grouped)")
      let origin =
        if let pinned = place.known?.operatorKey {
          pinned == handover.operatorKey ? "the same as before" : "new: the key before it vouches for it"
        } else if handover.isSigned {
          "new: compare it with what the operator shows"
        } else { "new, and nothing here is signed: accept it from the operator only" }
      console.note("          \(origin)")
    } else {
      console.note("operator  not named: nothing shows who made this")
    }
    if let rider = file.rider { console.note("rider     \(printable(rider.name))") }
    if let issued = handover.issued { console.note("signed    \(dateAndTime(issued))") }
    if let known = place.known {
      let changes = place.changes(by: handover)
      console.note("changes   \(changes.isEmpty ? "nothing" : changes.joined(separator: ", "))")
      console.note("in        \(known.path)")
    }
  }
}
