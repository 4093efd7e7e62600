import ArgumentParser
import Configuration
import Domain
import Encoding
import Rider
import StepProtocol
import Terminal

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
    let named = settings.vehicle.value != nil
    let paths = try named ? [settings.vehicleFile()] : settings.folders.vehicles().map(\.path)
    let vehicles = try paths.map { path in try KnownVehicle(VehicleFile(reading: path), at: context.seconds) }
    let state = vehicles.map(\.state).min { $0.rank < $1.rank } ?? .noVehicle
    let steps = state.next(vehicle.vehicle.map { " " + shellCommand("--vehicle", $0) } ?? "")
    if console.isJSON {
      return try console.result([
        "state": .string(state.rawValue), "next": .array(steps.map { .string($0.typed) }),
        "vehicles": .array(vehicles.map(\.json)),
      ])
    }
    func row(_ label: String, _ text: String) throws { try console.result("\(label.aligned(to: 8)) \(text)") }
    for vehicle in vehicles {
      try row("vehicle", "\(printable(vehicle.file.vehicle.name)) (\(settings.folders.displayed(vehicle.file.path)))")
      try row("token", vehicle.token?.line ?? "none; it takes one to move its steps")
    }
    if vehicles.isEmpty { try row("vehicle", "none: you know no vehicle yet") }
    let width = steps.map(\.typed.count).max() ?? 0
    for (index, next) in steps.enumerated() {
      try row(index == 0 ? "next" : "", "\(next.typed.aligned(to: width))   \(next.does)")
    }
    console.note("all commands: stepctl --help; the manual: man stepctl")
  }

  enum State: String {
    case ready
    case tokenNotYetValid = "token_not_yet_valid"
    case tokenExpired = "token_expired"
    case noToken = "no_token"
    case noVehicle = "no_vehicle"

    /// The vehicle that needs least counts.
    var rank: Int {
      switch self {
      case .ready: 0
      case .tokenNotYetValid: 1
      case .tokenExpired: 2
      case .noToken: 3
      case .noVehicle: 4
      }
    }

    /// - Parameter vehicle: the option that says which one is meant.
    func next(_ vehicle: String) -> [(typed: String, does: String)] {
      let asking = [
        ("stepctl enroll --output request", "give it to your operator"),
        ("stepctl config import FILE", "add what the operator gives you"),
      ]
      return switch self {
      case .ready:
        [
          ("stepctl open\(vehicle)", "open the step that you stand in front of"),
          ("stepctl status\(vehicle)", "how the steps stand"),
        ]
      case .tokenNotYetValid: [("stepctl status\(vehicle)", "how the steps stand, from then on")]
      case .tokenExpired, .noToken: asking
      case .noVehicle:
        [
          ("stepctl config import --qr FILE", "from a picture of the vehicle's code, or /dev/video0"),
          ("stepctl config import FILE", "from what your operator gave you"),
          ("stepctl provision vehicle car", "make one of your own"),
        ]
      }
    }
  }
}

/// A vehicle's file, and what its rider may do.
private struct KnownVehicle {
  let file: VehicleFile
  let state: Standing.State
  let token: TokenReport?
  private let expires: Int64?

  init(_ file: VehicleFile, at now: Int64) throws {
    self.file = file
    guard file.rider != nil else {
      (state, token, expires) = (.noToken, nil, nil)
      return
    }
    let token = try file.riderToken()
    state = now < token.notBefore ? .tokenNotYetValid : now >= token.expires ? .tokenExpired : .ready
    (self.token, expires) = (TokenReport(token, at: now), token.expires)
  }

  var json: JSON {
    [
      "name": .string(file.vehicle.name), "uuid": .string(file.vehicle.uuid.description), "file": .string(file.path),
      "state": .string(state.rawValue), "rider": file.rider.map { .string($0.name) } ?? .null,
      "expires": expires.map { .integer($0) } ?? .null,
    ]
  }
}
