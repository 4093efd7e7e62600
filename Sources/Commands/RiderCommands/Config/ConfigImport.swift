import ArgumentParser
import CodeReading
import CommandParts
import Domain
import Encoding
import FileFormats
import Glibc
import MQTT
import Rider
import StepProtocol
import SystemIO
import Terminal
import UserSettings

struct ConfigImport: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Add a vehicle from its QR code or your operator's file.",
    usage: "stepctl config import [<options>] [<file>]")

  @Argument(
    help: ArgumentHelp(
      "What your operator gave you, a vehicle.toml, or a vehicle's code: text, a picture, a camera, or - (standard input).",
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
    guard file == nil || qr.isEmpty else { throw ValidationError("Give either a file or --qr.") }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let settings = try context.settings(timeout: timeout.typed)
    let source = try file.map(ImportSource.file) ?? .pictures(qr.isEmpty ? [camera()] : qr)
    let (handover, place) = try Import(source: source, name: name, isTrusted: yes, noInput: input.noInput)
      .run(context, settings, console)

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

  /// The camera that is there. A sheet's printed command names none.
  private func camera() throws(CommandFailure) -> String {
    guard let camera = CodeSource.cameras().first else {
      throw CommandFailure(
        .unavailable, "there is no camera to scan a code with",
        hint: "give what your operator gave you: `stepctl config import FILE`")
    }
    return camera
  }
}
