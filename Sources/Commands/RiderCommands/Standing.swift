import ArgumentParser
import CommandParts
import Domain
import Encoding
import FileFormats
import Rider
import StepProtocol
import Terminal
import UserSettings

/// `stepctl` alone: where you stand, and what to type next.
struct Standing: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "stepctl", abstract: "Say which vehicles you can move, and what to type next.")

  @OptionGroup var vehicle: VehicleOptions
  @OptionGroup var radio: RadioOptions
  @OptionGroup var nfc: NFCOptions
  @OptionGroup var timeout: TimeoutOptions
  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let settings = try context.settings(
      vehicle: vehicle.vehicle, radio: radio.radio, nfc: nfc.nfc, timeout: timeout.typed)
    let vehicles = try knownVehicles(settings, context, console)
    let state = vehicles.map(\.state).min { $0.rank < $1.rank } ?? .noVehicle
    let option = vehicle.vehicle.map { " " + shellCommand("--vehicle", $0) }
    // The radio tells several vehicles apart; the network does not.
    let isOne = vehicles.count { $0.state == state } < 2
    let example = isOne ? nil : vehicles.first { $0.state == state }?.name
    let steps = state.next(option ?? "", away: option ?? example.map { " " + shellCommand("--vehicle", $0) } ?? "")
    if console.isJSON {
      return try console.result([
        "state": .string(state.rawValue), "next": .array(steps.map { .string($0.typed) }),
        "vehicles": .array(vehicles.map(\.json)),
      ])
    }
    func row(_ label: String, _ text: String) throws { try console.result("\(label.aligned(to: 8)) \(text)") }
    for vehicle in vehicles {
      try row("vehicle", "\(printable(vehicle.file.vehicle.name)) (\(settings.folders.displayed(vehicle.file.path)))")
      try row("token", vehicle.access)
    }
    if vehicles.isEmpty { try row("vehicle", "none: you know no vehicle yet") }
    let width = steps.map(\.typed.count).max() ?? 0
    for (index, next) in steps.enumerated() {
      try row(index == 0 ? "next" : "", "\(next.typed.aligned(to: width))   \(next.does)")
    }
    console.note("all commands: stepctl --help; the manual: man stepctl")
  }

  private func knownVehicles(_ settings: Settings, _ context: Context, _ console: Console) throws -> [KnownVehicle] {
    let bookings = (try? context.fleetFolder().bookings()) ?? []
    func known(_ path: String, _ name: String?) throws -> KnownVehicle {
      try KnownVehicle(VehicleFile(reading: path), name: name, bookings, at: context.seconds)
    }
    if settings.vehicle.value != nil { return [try known(settings.vehicleFile(), nil)] }
    var (vehicles, faults) = ([KnownVehicle](), [any Failure]())
    for vehicle in try settings.folders.vehicles() {
      do { vehicles.append(try known(vehicle.path, vehicle.name)) } catch let error as any Failure {
        faults.append(error)
      }
    }
    if vehicles.isEmpty, let fault = faults.first { throw fault }
    // The others are usable.
    for fault in faults { console.note("vehicle", printable(fault.description)) }
    return vehicles
  }

  enum State: String {
    case ready
    case tokenNotYetValid = "token_not_yet_valid"
    case tokenExpired = "token_expired"
    /// The token's times are still valid, but the vehicle will be told that it is revoked.
    case bookingEnded = "booking_ended"
    case noToken = "no_token"
    case noVehicle = "no_vehicle"

    /// The vehicle that needs the fewest further steps has the lowest rank.
    var rank: Int {
      switch self {
      case .ready: 0
      case .tokenNotYetValid: 1
      case .bookingEnded: 2
      case .tokenExpired: 3
      case .noToken: 4
      case .noVehicle: 5
      }
    }

    /// - Parameters:
    ///   - vehicle: the option that names the vehicle.
    ///   - away: the option to use where no radio can hear the vehicle.
    func next(_ vehicle: String, away: String) -> [(typed: String, does: String)] {
      let asking = [
        ("stepctl enroll --output request", "give it to your operator"),
        ("stepctl open --import FILE", "with what the operator gives you"),
      ]
      return switch self {
      case .ready:
        [
          ("stepctl open\(vehicle)", "open the step that you stand in front of"),
          ("stepctl status\(away)", "how the steps stand"),
        ]
      case .tokenNotYetValid: [("stepctl status\(away)", "how the steps stand, from then on")]
      case .bookingEnded: [("stepctl vehicles", "what can be booked"), ("stepctl book VEHICLE --for 2h", "book again")]
      case .tokenExpired, .noToken: asking
      case .noVehicle:
        [
          ("stepctl open --import FILE", "with what your operator gave you: a file or a picture"),
          ("stepctl config import FILE", "add a vehicle: its code, a picture of it, or /dev/video0"),
          ("stepctl provision vehicle car", "make one of your own"),
        ]
      }
    }
  }
}

/// A vehicle's file, and what its rider is allowed to do.
private struct KnownVehicle {
  let file: VehicleFile
  /// The vehicle's name for `--vehicle`.
  let name: String?
  let state: Standing.State
  let access: String
  private let expires: Int64?

  init(_ file: VehicleFile, name: String?, _ bookings: [Booking], at now: Int64) throws {
    (self.file, self.name) = (file, name)
    guard file.rider != nil else {
      (state, access, expires) = (.noToken, "none; you need a token to move its steps", nil)
      return
    }
    let token = try file.riderToken()
    expires = token.expires
    let booked = bookings.filter { $0.vehicle == file.vehicle.uuid }
    // A booking's token begins with the booking, or later.
    if !booked.contains(where: \.isLive),
      let ended = booked.first(where: { $0.from <= token.notBefore && now < token.expires })
    {
      (state, access) = (.bookingEnded, "of the booking \(ended.shortID), which is \(ended.state)")
    } else {
      state = now < token.notBefore ? .tokenNotYetValid : now >= token.expires ? .tokenExpired : .ready
      access = TokenReport(token, at: now).line
    }
  }

  var json: JSON {
    [
      "name": .string(file.vehicle.name), "uuid": .string(file.vehicle.uuid.description), "file": .string(file.path),
      "state": .string(state.rawValue), "rider": file.rider.map { .string($0.name) } ?? .null,
      "expires": expires.map { .integer($0) } ?? .null,
    ]
  }
}
