import Access
import ArgumentParser
import CommandParts
import Domain
import Encoding
import FileFormats
import Glibc
import Operator
import StepProtocol
import SystemIO
import Terminal

struct ProvisionToken: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "token",
    abstract: "Allow a rider to move a vehicle's steps for some time.",
    usage: """
      stepctl provision token [<options>] <dir> --rider <rider>
      stepctl provision token [<options>] <dir> --device <request>
      """)

  @OptionGroup var vehicle: ProvisionedOptions

  @Option(
    help: "The rider: letters, digits, dots, hyphens and underscores (default: the name in the request).",
    completion: LiveCompletion.rider)
  var rider: RiderName?

  @Option(
    help: ArgumentHelp(
      "What `stepctl enroll` printed on the rider's device: a file, - or the text itself.", valueName: "request"),
    completion: .file())
  var device: String?

  @Option(
    help: ArgumentHelp(
      "When it begins: 2026-11-23T08:00, or 08:00 for the next time (default: now).", valueName: "time"))
  var from: LocalTime?

  @Option(
    name: .customLong("steps"),
    help: ArgumentHelp("The steps, joined by commas or given one by one (default: all).", valueName: "ids"),
    completion: LiveCompletion.steps)
  var lists: [StepList] = []

  /// Nil for all steps.
  private var steps: [StepID]? { lists.isEmpty ? nil : lists.flatMap(\.ids) }

  @Option(
    name: .customLong("for"), parsing: .unconditional,
    help: ArgumentHelp("How long the token is valid, 1s to 36500d: 45s, 30m, 8h or 7d.", valueName: "time"))
  var lifetime = Lifetime(seconds: 8 * 3600)

  @Option(
    help: ArgumentHelp(
      "The rider's own public device key, as a JWK (default: a new one).", valueName: "file"),
    completion: .file(extensions: ["jwk"]))
  var deviceKey: String?

  @Flag(help: "Replace the token of a rider who has one.")
  var force = false

  @OptionGroup var handover: HandoverOptions

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard rider != nil || device != nil else { throw ValidationError("Give --device or --rider.") }
    guard device == nil || deviceKey == nil && !force else {
      throw ValidationError("--device takes neither --device-key nor --force.")
    }
    if let steps, Set(steps).count < steps.count { throw ValidationError("--steps names a step twice.") }
    guard device != nil || handover.outputName == nil && !handover.drawn else {
      throw ValidationError("--output and --drawn are for --device.")
    }
  }

  func run(in context: Context) throws {
    let console = output.console(context)
    let place = try vehicle.place(in: context)
    let now = context.seconds
    let begin = from?.seconds(after: now) ?? now
    if let device { return try grant(device, from: begin, place, context, console) }
    // `validate` has checked this.
    let rider = rider!
    let device = try deviceKey.map(KeyFile.verificationKey)
    let summary = try place.provisionToken(
      TokenPlan(rider: rider, steps: steps, notBefore: begin, lifetime: lifetime.seconds, deviceKey: device),
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
    console.note("try: \(shellCommand("stepctl", "open", "--vehicle", vehicleFile))")
  }

  /// Answers a device's request with one text. The rider's keys stay on the rider's device.
  private func grant(
    _ device: String, from begin: Int64, _ place: VehicleFolder, _ context: Context, _ console: Console
  ) throws {
    let request = try Self.request(device, context)
    let rider = try rider ?? place.riderName(in: request)
    let access = try place.grantAccess(
      TokenPlan(rider: rider, steps: steps, notBefore: begin, lifetime: lifetime.seconds), to: request,
      now: context.seconds)
    if console.isJSON {
      let files = try handover.write(access.text)
      try console.result([
        "rider": .string(rider.description), "token": .string(access.token.id),
        "steps": .array(access.token.steps.map { .string($0.description) }),
        "not_before": .integer(access.token.notBefore), "expires": .integer(access.token.expires),
        "device_key": .string(request.device.thumbprint.description), "access": .string(access.text),
        "file": handover.file.map { .string($0) } ?? .null, "files": .array(files.map { .string($0) }),
      ])
      return
    }
    console.note(TokenReport(access.token, at: context.seconds).line)
    console.note("for the device \(request.device.thumbprint.grouped)")
    try handover.put(access.text, console)
    console.note("the rider imports it, and compares your key: \(access.operatorKey.thumbprint.grouped)")
  }

  /// Bytes: more than a mail with a request in it.
  private static let largestText = 1 << 16

  private static func request(_ text: String, _ context: Context) throws -> DeviceRequest {
    let content: String
    if text == "-" {
      content = try context.typed(atMost: largestText)
    } else if text.hasPrefix("eyJ"), !Files.exists(text) {
      content = text
    } else {
      content = String(decoding: try Files.read(text, limit: largestText), as: UTF8.self)
    }
    // A whole mail may have come.
    for text in ReceivedText.texts(in: content) {
      if let request = try? DeviceRequest(verifying: text) { return request }
    }
    let text = content.filter { !$0.isWhitespace && $0 != "\u{FEFF}" }
    do throws(ProtocolError) { return try DeviceRequest(verifying: text) } catch {
      throw RequestError.malformed(error)
    }
  }
}
