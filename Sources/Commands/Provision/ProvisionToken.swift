import ArgumentParser
import Configuration
import Domain
import Encoding
import Provisioning
import StepProtocol
import SystemIO
import Terminal

struct ProvisionToken: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "token",
    abstract: "Allow a rider to move a vehicle's steps for some time.",
    usage: "stepctl provision token [<options>] <dir> --rider <rider>")

  @Argument(help: ArgumentHelp("The vehicle's folder.", valueName: "dir"), completion: .directory)
  var folder: String

  @Option(help: "The rider: letters, digits, dots, hyphens and underscores. The files go into riders/NAME.")
  var rider: RiderName

  @Option(help: ArgumentHelp("The steps, joined by commas (default: all).", valueName: "ids"))
  var steps: StepList?

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("How long the token is valid, as 45s, 30m, 8h or 7d.", valueName: "time"))
  var lifetime = Lifetime(seconds: 8 * 3600)

  @Option(
    help: ArgumentHelp(
      "The rider's own public device key, as a JWK (default: a new one).", valueName: "file"),
    completion: .file(extensions: ["jwk"]))
  var deviceKey: String?

  @Flag(help: "Replace the token of a rider who has one.")
  var force = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard !folder.isEmpty else { throw ValidationError("The vehicle's folder has no name.") }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let place = VehicleFolder(folder)
    let now = context.seconds
    let device = try deviceKey.map(KeyFile.verificationKey)
    let summary = try place.provisionToken(
      TokenPlan(rider: rider, steps: steps?.ids, notBefore: now, lifetime: lifetime.seconds, deviceKey: device),
      now: now, force: force)
    let vehicleFile = place.path("riders/\(rider)/vehicle.toml")

    if console.isJSON {
      try console.result([
        "rider": .string(rider.description), "vehicle_file": .string(vehicleFile),
        "files": .array(summary.files.map { .string(place.path($0)) }),
        "token": .string(summary.token.id), "steps": .array(summary.token.steps.map { .string($0.description) }),
        "not_before": .integer(summary.token.notBefore), "expires": .integer(summary.token.expires),
        "device_key": .string(summary.token.device.thumbprint.description),
      ])
      return
    }
    try console.result("\(TokenReport(summary.token, at: now).line): \(vehicleFile)")
    if let missing = summary.missingDeviceKey {
      console.note("the rider must put the device's private key into \(place.path(missing)), mode 0600")
    }
    console.note("try: stepctl open --vehicle \(vehicleFile)")
  }
}

/// Step ids, joined by commas, none twice.
struct StepList: ExpressibleByArgument {
  let ids: [StepID]

  init?(argument: String) {
    let parts = argument.split(separator: ",", omittingEmptySubsequences: false).map { StepID(String($0)) }
    ids = parts.compactMap { $0 }
    guard ids.count == parts.count, Set(ids).count == ids.count else { return nil }
  }
}

/// A length of time as people type it: a whole number and one of `s`, `m`, `h`, `d`.
struct Lifetime: ExpressibleByArgument {
  let seconds: Int64

  /// A century. No certificate lasts that long.
  private static let longest: Int64 = 36_500 * 86400

  init(seconds: Int64) { self.seconds = seconds }

  init?(argument: String) {
    let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86400]
    guard let unit = argument.last.flatMap({ units[$0] }), argument.dropLast().allSatisfy(\.isNumber),
      let count = Int64(argument.dropLast()), (1...Self.longest / unit).contains(count)
    else { return nil }
    seconds = count * unit
  }

  var defaultValueDescription: String { "8h" }
}

extension RiderName: ExpressibleByArgument {
  package init?(argument: String) { self.init(argument) }
}
