import ArgumentParser
import Bluetooth
import CodeReading
import CommandParts
import Domain
import Encoding
import FileFormats
import NFC
import Rider
import SystemIO
import Terminal
import UserSettings

/// Selects how to find the rider's place.
enum MethodChoice: String, ExpressibleByArgument, CaseIterable {
  case auto, beacon, nfc, qr
}

/// Selects how to find the rider's place, and the devices for it.
struct PresenceOptions: ParsableArguments {
  @Option(help: ArgumentHelp("How to find out where you are.", valueName: "method"))
  var by: MethodChoice = .auto

  @OptionGroup var radio: RadioOptions
  @OptionGroup var reader: NFCOptions
  @OptionGroup var codes: QROptions
  @OptionGroup var timeout: TimeoutOptions

  /// What was typed.
  var request: PresenceRequest {
    PresenceRequest(by: by, radio: radio.radio, nfc: reader.nfc, qr: codes.qr, timeout: timeout.given)
  }
}

/// How to find the rider's place, and with which devices.
struct PresenceRequest: Equatable {
  var by = MethodChoice.auto
  var radio: String?
  var nfc: String?
  /// The source of a code's picture.
  var qr: String?
  var timeout: TimeSpan?

  func settings(_ context: Context, vehicle: String?) throws -> Settings {
    try context.settings(vehicle: vehicle, radio: radio, nfc: nfc, timeout: timeout?.text)
  }

  /// The file of the vehicle to use. The first of these decides: the vehicle that the user named, the one that is
  /// booked now, the only known one, the only one whose beacon is heard.
  func vehicleFile(
    _ settings: Settings, _ context: Context, _ interruption: Interruption, _ console: Console
  ) throws -> VehicleFile {
    if let active = try ActiveBooking(settings, context) { return try active.fetched(context, interruption, console) }
    guard settings.vehicle.value == nil, by == .auto || by == .beacon, try settings.folders.vehicles().count > 1 else {
      return try VehicleFile(reading: settings.usableVehicleFile(at: context.seconds))
    }
    let radio = try settings.radioSpec()
    // Data that was read from a pipe cannot be read again.
    if case .btsnoop("-") = radio {
      return try VehicleFile(reading: settings.usableVehicleFile(at: context.seconds))
    }
    let known = try settings.folders.vehicles()
    // Only a vehicle that the user names may have an unreadable file; here such files are skipped.
    let files = known.compactMap { vehicle in
      (try? VehicleFile(reading: vehicle.path)).map { (name: vehicle.name, file: $0) }
    }
    defer { console.progress.clear() }
    console.progress.show("listening for \(files.map(\.name).joined(separator: ", "))")
    let search = VehicleSearch(Set(files.map(\.file.vehicle.uuid)), radio: radio, limit: settings.timeout.value)
    let heard = try search.find(until: interruption, tell: console.note, trace: console.trace)
    console.progress.clear()
    let found = files.filter { heard.contains($0.file.vehicle.uuid) }
    guard let one = found.first else {
      throw CommandFailure(
        .notLocated, "not located: none of the vehicles that you know is heard",
        hint: "come closer, or name it: \(files.map { shellCommand("--vehicle", $0.name) }.joined(separator: ", "))")
    }
    // One vehicle may have two files: the operator's, and one of this user's.
    guard Set(found.map(\.file.vehicle.uuid)).count == 1 else {
      throw CommandFailure(
        .configuration, "several of your vehicles are heard: \(found.map(\.name).joined(separator: ", "))",
        hint: "name one: \(found.map { shellCommand("--vehicle", $0.name) }.joined(separator: ", "))")
    }
    let best = found.first { $0.file.opens(at: context.seconds) } ?? one
    console.note("vehicle", "\(best.file.vehicle.name) (\(best.name))")
    return best.file
  }

  /// Adds a hint to a radio error: another way to prove presence, without a radio.
  func leadingOn(_ error: RadioError) -> any Failure {
    if case .file = error { return error }
    guard [.unavailable, .noPermission].contains(error.exitStatus), !error.isInterruption else { return error }
    let ways = "without a radio, the tag or the code on the step may do: --by nfc, or --by qr"
    return CommandFailure(error.exitStatus, error.description, hint: error.hint.map { "\($0); \(ways)" } ?? ways)
  }

  /// The searches that the user chose, or all searches that are possible with the named devices.
  ///
  /// - Parameters:
  ///   - speed: how many times faster than its own time a recording is played; nil for as fast as it can be read.
  ///   - recording: the path of a new file that keeps what the radio hears.
  ///   - trace: receives what the devices hear and say; nil for no trace.
  func searches(
    _ vehicle: Vehicle, _ settings: Settings, speed: Double? = nil, recording: String? = nil, trace: Trace? = nil
  ) throws -> [any StepSearch] {
    func beacons() throws -> any StepSearch {
      BeaconSearch(
        vehicle, radio: try settings.radioSpec(), limit: settings.timeout.value, goesOnAtStep: true,
        speed: speed, recording: recording, trace: trace)
    }
    func tag() throws -> any StepSearch {
      TagSearch(vehicle, reader: try settings.reader(), limit: settings.timeout.value, trace: trace)
    }
    func code() throws -> any StepSearch {
      guard let source = qr ?? CodeSource.cameras().first else {
        throw CommandFailure(
          .unavailable, "there is no camera to look for a code with",
          hint: "plug one in, or give a picture of the code: --qr FILE")
      }
      return CodeSearch(vehicle, source: source, patience: settings.patience, trace: trace)
    }
    return switch by {
    case .beacon: [try beacons()]
    case .nfc: [try tag()]
    case .qr: [try code()]
    case .auto:
      [try beacons()] + (qr != nil ? [try code()] : []) + (settings.nfc.value != nil ? [try tag()] : [])
    }
  }
}
