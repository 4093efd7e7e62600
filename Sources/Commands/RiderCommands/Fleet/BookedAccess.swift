import Access
import CommandParts
import Domain
import Encoding
import FileFormats
import Glibc
import Rider
import StepProtocol
import SystemIO
import Terminal
import UserSettings

/// Fetches a booking's access file, and installs it as `config import` does.
struct BookedAccess {
  let place: VehicleStore.Place
  /// The operator's key, if this device knew no vehicle of this operator before.
  let newOperator: Thumbprint?

  /// Fetches and imports the file. The server vouches for the operator, because the rider trusts it with the booking.
  ///
  /// - Parameter identity: this device's identity, if it was prepared.
  init(
    of booking: Booking, from client: FleetClient, _ context: Context,
    identity prepared: EnrolledDevice.Identity? = nil
  ) throws {
    let device = try EnrolledDevice(context.folders)
    _ = try device.prepare()
    let identity = try prepared ?? device.identity()
    // A user's name may contain letters that a rider's name must not have; "rider" has none of those.
    let name = getpwuid(geteuid()).flatMap { RiderName(String(cString: $0.pointee.pw_name)) } ?? RiderName("rider")!
    func fetched() throws -> (AccessFile, ImportedVehicle) {
      // The login is bound to the same key, so a passphrase was already asked for, or is asked for now.
      let request = try device.request(
        name: name, now: client.now, identity: identity, unlock: { _, _ in try client.deviceKey() })
      let text = try client.access(to: booking, for: request.text)
      let access: AccessFile
      do throws(ProtocolError) { access = try AccessFile(parsing: text, now: client.now) } catch {
        throw CommandFailure(.badData, "the access file of \(client.server.host) cannot be used: \(error)")
      }
      guard access.token.vehicle == booking.vehicle else {
        throw CommandFailure(.badData, "the access file of \(client.server.host) is for another vehicle")
      }
      return (access, try ImportedVehicle(access, on: device, identity))
    }
    /// - Parameter attempts: how often another program may have fetched newer access meanwhile.
    func installed(attempts: Int) throws -> (AccessFile, VehicleStore.Place) {
      let (access, imported) = try fetched()
      do { return (access, try VehicleStore(context.folders).install(imported)) } catch StoreError.older
        where attempts > 1
      { return try installed(attempts: attempts - 1) }
    }
    let (access, place) = try installed(attempts: 4)
    self.place = place
    newOperator = place.known == nil && place.sibling == nil ? access.operatorKey.thumbprint : nil
  }

  /// The error if the server did what was asked, but the access could not be fetched.
  ///
  /// - Parameter done: what the server did: `it is booked`.
  static func isMissing(_ done: String, _ error: any Failure) -> CommandFailure {
    // "Refused" would say that nothing was booked.
    CommandFailure(
      error.exitStatus == .refused ? .unavailable : error.exitStatus,
      "\(done), but its access is not here yet: \(error.description)",
      hint: error.hint ?? "`stepctl open` fetches it")
  }
}

/// The one booking that is active now.
struct ActiveBooking {
  let booking: Booking
  /// The file of the booking's vehicle, with a rider's part; nil if no access was ever fetched.
  let vehicleFile: String?

  /// Nil if the user named a vehicle, or if none or several are booked now.
  init?(_ settings: Settings, _ context: Context) throws {
    guard settings.vehicle.value == nil else { return nil }
    let active = context.activeBookings()
    guard let booking = active.first, active.count == 1 else { return nil }
    self.booking = booking
    vehicleFile = try Self.file(of: booking.vehicle, settings)
  }

  private static func file(of vehicle: UUID, _ settings: Settings) throws -> String? {
    // An imported code makes a file without a rider.
    try settings.folders.vehicles().first {
      guard let file = try? VehicleFile(reading: $0.path) else { return false }
      return file.vehicle.uuid == vehicle && file.rider != nil
    }?.path
  }

  /// The vehicle's file. Fetches it, with its access, if this device does not have it.
  func fetched(_ context: Context, _ interruption: Interruption, _ console: Console) throws -> VehicleFile {
    if let vehicleFile { return try VehicleFile(reading: vehicleFile) }
    console.note("fetching the access of the booking \(booking.shortID)")
    return try VehicleFile(
      reading: BookedAccess(of: booking, from: context.fleet(interruption), context).place.vehicleFile)
  }
}

extension VehicleFile {
  /// The rider's token, if there is a readable one.
  fileprivate var token: Token? { rider.flatMap { try? Token(unverified: KeyFile.token($0.token)) } }

  /// Whether there is a token that is valid now.
  func opens(at now: Int64) -> Bool { token?.validity.state(at: now) == .now }
}

extension Context {
  /// The known bookings that are active now. A user without an account has no file of them, and loses no time here.
  func activeBookings() -> [Booking] {
    ((try? fleetFolder())?.bookings() ?? []).filter { $0.isActive(at: seconds) }
  }

  func activeBooking(of vehicle: UUID) -> Booking? { activeBookings().first { $0.vehicle == vehicle } }
}

extension Settings {
  /// The path of the vehicle file to use: the named one, the one of the active booking, the only one, or the only one
  /// of several that can be opened now.
  func chosenVehicleFile(_ context: Context) throws -> String {
    try ActiveBooking(self, context)?.vehicleFile ?? usableVehicleFile(at: context.seconds)
  }

  /// The same vehicle's file. Fetches that of the active booking, with its access, if this device does not have it.
  func chosenVehicleFile(
    _ context: Context, _ interruption: Interruption, _ console: Console
  ) throws -> VehicleFile {
    try ActiveBooking(self, context)?.fetched(context, interruption, console)
      ?? VehicleFile(reading: usableVehicleFile(at: context.seconds))
  }

  /// The file to use if no booking is active.
  func usableVehicleFile(at now: Int64) throws -> String {
    try vehicleFile { path in (try? VehicleFile(reading: path))?.opens(at: now) ?? false }
  }
}

extension Booking {
  /// What it is called: the vehicle's name.
  var title: String { name ?? vehicle.description }
  /// Enough of the id to distinguish one person's bookings.
  var shortID: String { String(id.prefix(8)) }

  /// What a program is told.
  func report(vehicleFile: String? = nil) -> JSON {
    .object(
      (json.object ?? []).filter { $0.name != "etag" }
        + [.init("vehicle_file", vehicleFile.map(JSON.string) ?? .null)])
  }
}
