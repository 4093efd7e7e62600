import Bluetooth
import CodeReading
import CommandParts
import Domain
import Encoding
import FileFormats
import Rider
import StepProtocol
import SystemIO
import Terminal
import UserSettings

/// What this device knows of its rider.
struct Knowledge {
  let folders: ConfigurationFolders
  /// Unix time, by this computer's clock.
  let now: Int64
  /// The thumbprint of the device's key; nil if there is none.
  let device: Thumbprint?
  /// Whether the device had a key, and has it no longer.
  let isKeyLost: Bool
  /// The login at a fleet's server, or what is left of it.
  let login: SavedLogin?
  private(set) var bookings: [Booking]
  let vehicles: [KnownVehicle]
  /// The last refusal, if nothing has changed since.
  let refusal: RememberedRefusal?
  /// `isThere`: whether this computer has the adapter; nil for a radio that is none of this computer's.
  let radio: (name: String, isThere: Bool?)
  /// Whether the settings name an NFC reader.
  let hasReader: Bool
  let hasCamera: Bool
  /// The option that names the vehicle that the user has named.
  let option: String

  /// How long a refusal counts that another try can mend, and any other one, seconds.
  private static let (briefly, long): (Int64, Int64) = (600, 7 * 86_400)
  /// How long the server may take to say what is booked.
  private static let patience = Duration.seconds(1)

  /// - Throws: if a folder or the only vehicle's file cannot be read.
  init(_ settings: Settings, _ context: Context, _ console: Console) throws {
    let now = context.seconds
    (folders, self.now) = (settings.folders, now)
    vehicles = try KnownVehicle.all(settings, console)
    if case .flag = settings.vehicle.origin, let name = settings.vehicle.value {
      option = " " + shellCommand("--vehicle", name)
    } else {
      option = ""
    }
    let keys = try? EnrolledDevice(context.folders)
    device = keys.flatMap { try? $0.verificationKey().thumbprint }
    isKeyLost = keys?.hasLostKey ?? false
    let folder = try? context.fleetFolder()
    login = folder.flatMap { try? $0.login() }
    bookings = folder?.bookings() ?? []
    let last = RememberedRefusal(in: context.folders)
    refusal = last.flatMap { [vehicles] last in
      let isBrief = last.refusal.retryCanHelp
      guard now - last.time < (isBrief ? Self.briefly : Self.long) else { return nil }
      // New access has not been refused yet.
      return vehicles.contains { $0.file.vehicle.uuid == last.vehicle && $0.token?.id == last.token } ? last : nil
    }
    radio = (settings.radio.value, (try? settings.radioSpec()).flatMap(Self.isThere))
    hasReader = settings.nfc.value != nil
    hasCamera = !CodeSource.cameras().isEmpty
    // A vehicle may have been booked elsewhere, in a browser.
    if device != nil, login?.tokens != nil, !bookings.contains(where: isLive) { try askServer(context) }
    if settings.vehicle.value != nil {
      bookings = bookings.filter { [vehicles] booking in
        vehicles.contains { $0.file.vehicle.uuid == booking.vehicle }
      }
    }
  }

  /// For how long the device's key can still be used without its passphrase, seconds; nil if it is not unlocked.
  var unlockedFor: Int64? { (try? EnrolledDevice(folders))?.unlockedUntil.map { max($0 - now, 0) } }

  private mutating func askServer(_ context: Context) throws {
    do {
      let client = try context.fleet(
        context.interruption(), deadline: context.clocks.steady() + Self.patience, noInput: true)
      bookings = try client.keptBookings()
    } catch let error as any Failure where !error.isInterruption {}
  }

  private static func isThere(_ radio: RadioSpec) -> Bool? {
    radio.adapter.map { number in Adapter.all().contains { $0.number == number } }
  }

  /// Whether a booking can still be used.
  func isLive(_ booking: Booking) -> Bool { booking.isLive && now < booking.to + Booking.grace }

  /// The booking to which a vehicle's token belongs, if that booking has ended.
  func endedBooking(of vehicle: KnownVehicle) -> Booking? {
    guard let token = vehicle.token else { return nil }
    let booked = bookings.filter { $0.vehicle == vehicle.file.vehicle.uuid }
    if booked.contains(where: isLive) { return nil }
    // A booking's token begins while the booking lasts. A later one was handed out by the operator.
    return token.validity.state(at: now) == .over
      ? nil : booked.first { $0.from <= token.notBefore && token.notBefore < $0.to + Booking.grace }
  }

  func state(of vehicle: KnownVehicle) -> NextStep.State {
    switch vehicle.access {
    case .none: .noToken
    case .keyLost: .keyLost
    case .lost: .tokenLost
    case .token(let token):
      switch token.validity.state(at: now) {
      case .over: .tokenExpired
      case _ where endedBooking(of: vehicle) != nil: .bookingEnded
      case .notYet: .tokenNotYetValid
      case .now: .ready
      }
    }
  }
}

/// A vehicle's file, and the rider's access to it.
struct KnownVehicle {
  enum Access {
    /// Only the vehicle is known.
    case none
    case keyLost
    /// The token is missing or cannot be used, for this reason.
    case lost(String)
    case token(Token)
  }

  let file: VehicleFile
  let access: Access

  var token: Token? { if case .token(let token) = access { token } else { nil } }

  init(reading path: String) throws {
    file = try VehicleFile(reading: path)
    guard let rider = file.rider else {
      access = .none
      return
    }
    guard Files.exists(rider.deviceKey) else {
      access = .keyLost
      return
    }
    do { access = .token(try file.riderToken()) } catch let error as any Failure where error.exitStatus != .noPermission
    {
      access = .lost(error.description)
    }
  }

  /// The vehicle that the user has named, or all that this device knows.
  static func all(_ settings: Settings, _ console: Console) throws -> [KnownVehicle] {
    if settings.vehicle.value != nil { return [try KnownVehicle(reading: settings.vehicleFile())] }
    var (vehicles, faults) = ([KnownVehicle](), [any Failure]())
    for vehicle in try settings.folders.vehicles() {
      do { vehicles.append(try KnownVehicle(reading: vehicle.path)) } catch let error as any Failure {
        faults.append(error)
      }
    }
    if vehicles.isEmpty, let fault = faults.first { throw fault }
    // The others are usable.
    for fault in faults { console.note("vehicle", printable(fault.description)) }
    return vehicles
  }
}
