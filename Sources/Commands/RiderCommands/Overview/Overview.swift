import Access
import ArgumentParser
import CommandParts
import Domain
import Encoding
import FileFormats
import Rider
import StepProtocol
import Terminal
import UserSettings

/// `stepctl` alone: where the rider stands, the one next thing to type, and why.
struct Overview: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "stepctl", abstract: "Say where you stand, and the one next thing to type.")

  @OptionGroup var vehicle: VehicleOptions
  @OptionGroup var radio: RadioOptions
  @OptionGroup var nfc: NFCOptions
  @OptionGroup var timeout: TimeoutOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let settings = try context.settings(
      vehicle: vehicle.vehicle, radio: radio.radio, nfc: nfc.nfc, timeout: timeout.typed)
    let known = try Knowledge(settings, context, console)
    let next = NextStep(for: known)
    if console.isJSON { return try console.result(known.json(next)) }
    if let vehicle = next.vehicle { try console.result("vehicle", known.line(of: vehicle)) }
    try console.result(next.summary.label, next.summary.text)
    let width = next.commands.map(\.typed.columns).max() ?? 0
    for (index, command) in next.commands.enumerated() {
      let label = index == 0 ? "next" : ""
      let line = "\(command.typed.aligned(to: width))   \(command.does)"
      // A terminal would break a longer line within a word.
      if let columns = console.columns, Console.labelColumns + line.columns > columns {
        try console.result(label, command.typed)
        try console.result("", "  \(command.does)")
      } else {
        try console.result(label, line)
      }
    }
    if let news = next.news { try console.result("operator", "tell them: \(news)") }
    if output.verbose > 0 { for line in known.lines { try console.result(line.label, line.text) } }
    console.note("all commands: stepctl --help; the manual: man stepctl")
  }
}

extension Knowledge {
  /// `Van (~/.config/stepctl/vehicles/van/vehicle.toml), and 2 more: stepctl config list`
  fileprivate func line(of vehicle: KnownVehicle) -> String {
    let more = vehicles.count > 1 ? ", and \(vehicles.count - 1) more: stepctl config list" : ""
    return "\(vehicle.file.vehicle.name) (\(folders.displayed(vehicle.file.path)))\(more)"
  }

  /// What else is known, in three lines.
  fileprivate var lines: [(label: String, text: String)] {
    let account =
      if let login {
        "\(login.email ?? "a login") at \(login.server.host)\(login.tokens == nil ? ", not logged in" : "")"
      } else { "none" }
    let unlocked = unlockedFor.map { ", unlocked for \(span($0))" } ?? ""
    let key = device.map { $0.grouped + unlocked } ?? (isKeyLost ? "its key is lost" : "no key yet")
    return [
      ("account", account), ("device", key), ("radio", "\(radio.name)\(radio.isThere == false ? ", not there" : "")"),
    ]
  }

  fileprivate func json(_ next: NextStep) -> JSON {
    [
      "state": .string(next.state.rawValue), "next": .array(next.commands.map { .string($0.typed) }),
      "why": .string(next.commands.first?.does ?? ""), "tell": next.news.map(JSON.string) ?? .null,
      "vehicles": .array(
        vehicles.map { vehicle in
          let state = state(of: vehicle)
          return [
            "name": .string(vehicle.file.vehicle.name), "uuid": .string(vehicle.file.vehicle.uuid.description),
            "file": .string(vehicle.file.path), "state": .string(state.rawValue),
            "rider": vehicle.file.rider.map { .string($0.name) } ?? .null,
            "expires": vehicle.token.map { .integer($0.expires) } ?? .null,
          ]
        }),
      "bookings": .array(
        bookings.map { booking in
          booking.report(vehicleFile: vehicles.first { $0.file.vehicle.uuid == booking.vehicle }?.file.path)
        }),
      "account": login.map { login in
        [
          "server": .string(login.server.description), "email": login.email.map(JSON.string) ?? .null,
          "logged_in": .bool(login.tokens != nil),
        ]
      } ?? .null,
      "device_key": device.map { .string($0.description) } ?? .null,
      "unlocked_s": unlockedFor.map(JSON.integer) ?? .null,
      "refused": refusal.map { refusal in
        [
          "time_s": .integer(refusal.time), "vehicle": .string(refusal.vehicle.description),
          "refusal": .string(refusal.refusal.code.rawValue), "retry": .bool(refusal.refusal.retryCanHelp),
          "booking": refusal.booking.map(JSON.string) ?? .null,
        ]
      } ?? .null,
      "radio": ["name": .string(radio.name), "is_there": radio.isThere.map(JSON.bool) ?? .null],
    ]
  }
}
