import ArgumentParser
import Configuration
import Domain
import Encoding
import Glibc
import Provisioning
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

  @Argument(help: ArgumentHelp("The vehicle's folder.", valueName: "dir"), completion: .directory)
  var folder: String

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
    try check(folder: folder)
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
    let place = VehicleFolder(folder)
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

  private static func request(_ text: String, _ context: Context) throws -> DeviceRequest {
    let content: String
    if text == "-" {
      content = try ImportSource.typed(context)
    } else if text.hasPrefix("eyJ"), !Files.exists(text) {
      content = text
    } else {
      content = String(decoding: try Files.read(text, limit: DeviceRequest.maximumSize + 16), as: UTF8.self)
    }
    do throws(ProtocolError) { return try DeviceRequest(verifying: content.filter { !$0.isWhitespace }) } catch {
      throw RequestError.malformed(error)
    }
  }
}

/// Step ids separated by commas, without repetition.
struct StepList: ExpressibleByArgument {
  let ids: [StepID]

  init?(argument: String) {
    let parts = argument.split(separator: ",", omittingEmptySubsequences: false).map { StepID(String($0)) }
    ids = parts.compactMap { $0 }
    guard ids.count == parts.count, Set(ids).count == ids.count else { return nil }
  }
}

/// A duration as people type it: a whole number and one of `s`, `m`, `h`, `d`.
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

  var defaultValueDescription: String { seconds % 86_400 == 0 ? "\(seconds / 86_400)d" : "\(seconds / 3600)h" }
}

/// A moment as people type it: a date and a time of day, or only a time of day.
struct LocalTime: ExpressibleByArgument {
  private let time: tm
  private let hasDate: Bool

  init?(argument: String) {
    let parts = argument.split(separator: "T", omittingEmptySubsequences: false)
    guard parts.count <= 2, let last = parts.last, let clock = Self.numbers(last, [2, 2], ":"), clock[0] < 24,
      clock[1] < 60
    else { return nil }
    var time = tm()
    (time.tm_hour, time.tm_min) = (clock[0], clock[1])
    hasDate = parts.count == 2
    if hasDate {
      guard let day = Self.numbers(parts[0], [4, 2, 2], "-"), day[0] >= 1970 else { return nil }
      (time.tm_year, time.tm_mon, time.tm_mday) = (day[0] - 1900, day[1] - 1, day[2])
      // mktime(3) turns an impossible date into another date.
      var normal = time
      guard timegm(&normal) >= 0, normal.tm_mday == time.tm_mday, normal.tm_mon == time.tm_mon else { return nil }
    }
    self.time = time
  }

  private static func numbers(_ text: Substring, _ widths: [Int], _ separator: Character) -> [Int32]? {
    let parts = text.split(separator: separator, omittingEmptySubsequences: false)
    let numbers = parts.compactMap { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int32($0) : nil }
    return parts.map(\.utf8.count) == widths && numbers.count == widths.count ? numbers : nil
  }

  /// Unix time. A time of day means its next occurrence.
  func seconds(after now: Int64) -> Int64 {
    func made(_ time: tm, daysLater: Int32) -> Int64 {
      var time = time
      time.tm_mday += daysLater
      // The time zone's rules decide whether daylight saving time applies.
      time.tm_isdst = -1
      return Int64(mktime(&time))
    }
    if hasDate { return made(time, daysLater: 0) }
    var clock = time_t(now)
    var today = tm()
    localtime_r(&clock, &today)
    (today.tm_hour, today.tm_min, today.tm_sec) = (time.tm_hour, time.tm_min, 0)
    let sameDay = made(today, daysLater: 0)
    return sameDay >= now ? sameDay : made(today, daysLater: 1)
  }
}

extension RiderName: ExpressibleByArgument {
  package init?(argument: String) { self.init(argument) }
}
