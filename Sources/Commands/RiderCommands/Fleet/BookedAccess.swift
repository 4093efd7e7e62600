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
  /// The operator's key, if this device did not know the vehicle before.
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
    let text = try client.access(to: booking, for: device.request(name: name, now: client.now, identity: identity).text)
    let access: AccessFile
    do throws(ProtocolError) { access = try AccessFile(parsing: text, now: client.now) } catch {
      throw CommandFailure(.badData, "the access file of \(client.server.host) cannot be used: \(error)")
    }
    guard access.token.vehicle == booking.vehicle else {
      throw CommandFailure(.badData, "the access file of \(client.server.host) is for another vehicle")
    }
    let imported = try ImportedVehicle(access, on: device, identity)
    let store = VehicleStore(context.folders)
    place = try store.place(for: imported)
    try store.install(imported, at: place)
    newOperator = place.known == nil ? access.operatorKey.thumbprint : nil
  }

  /// The error if the server did what was asked, but the access could not be fetched.
  ///
  /// - Parameter done: what the server did: `it is booked`.
  static func isMissing(_ done: String, _ error: any Failure) -> CommandFailure {
    CommandFailure(
      error.exitStatus, "\(done), but its access is not here yet: \(error.description)",
      hint: error.hint ?? "`stepctl open` fetches it")
  }
}

/// The one booking that is active now.
struct ActiveBooking {
  let booking: Booking
  /// The file of the booking's vehicle; nil if its access was not fetched yet.
  let vehicleFile: String?

  /// Nil if the user named a vehicle, or if none or several are booked now.
  init?(_ settings: Settings, _ context: Context) throws {
    // A user without an account has no such file, and loses no time here.
    guard settings.vehicle.value == nil, let folder = try? context.fleetFolder() else { return nil }
    let active = folder.bookings().filter { $0.isActive(at: context.seconds) }
    guard let booking = active.first, active.count == 1 else { return nil }
    self.booking = booking
    vehicleFile = try Self.file(of: booking.vehicle, settings)
  }

  private static func file(of vehicle: UUID, _ settings: Settings) throws -> String? {
    try settings.folders.vehicles().first { (try? VehicleFile(reading: $0.path))?.vehicle.uuid == vehicle }?.path
  }

  /// The vehicle's file with valid access. Fetches it if it is missing.
  func fetched(_ context: Context, _ interruption: Interruption, _ console: Console) throws -> VehicleFile {
    let known = try vehicleFile.map(VehicleFile.init(reading:))
    if let known, known.opens(at: context.seconds) { return known }
    console.note("fetching the access of the booking \(booking.shortID)")
    do {
      return try VehicleFile(
        reading: BookedAccess(of: booking, from: context.fleet(interruption), context).place.vehicleFile)
    } catch let error as any Failure {
      guard let known, !error.isInterruption else { throw error }
      // This computer's clock may be wrong, and the vehicle's decides.
      console.note("the access was not fetched: \(printable(error.description))")
      return known
    }
  }
}

extension VehicleFile {
  /// The rider's token, if there is a readable one.
  fileprivate var token: Token? { rider.flatMap { try? Token(unverified: KeyFile.token($0.token)) } }

  /// Whether there is a token that is valid now.
  fileprivate func opens(at now: Int64) -> Bool { token.map { $0.notBefore <= now && now < $0.expires } ?? false }

  /// How long before a token's end a new one is fetched, seconds.
  private static let renewal: Int64 = 300
  /// How long that may take. The rider stands at the step meanwhile.
  private static let patience = Duration.seconds(2)

  /// This file with newer access, if its access ends soon and came from a fleet's server, and the server answers in
  /// time with longer access; otherwise nil.
  func renewed(
    expires: Int64, _ context: Context, _ interruption: Interruption, _ console: Console
  ) throws -> VehicleFile? {
    guard expires - context.seconds < Self.renewal, let folder = try? context.fleetFolder() else { return nil }
    guard
      let booking = folder.bookings().first(where: { $0.vehicle == vehicle.uuid && $0.isActive(at: context.seconds) })
    else { return nil }
    do {
      let client = try context.fleet(interruption, deadline: context.clocks.steady() + Self.patience)
      return try VehicleFile(reading: BookedAccess(of: booking, from: client, context).place.vehicleFile)
    } catch let error as any Failure where !error.isInterruption {
      console.detail("the access was not renewed: \(error.description)")
      return nil
    }
  }
}

extension Settings {
  /// The path of the vehicle file to use: the named one, the one of the active booking, the only one, or the only one
  /// of several that can be opened now.
  func chosenVehicleFile(_ context: Context) throws -> String {
    try ActiveBooking(self, context)?.vehicleFile ?? usableVehicleFile(at: context.seconds)
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
