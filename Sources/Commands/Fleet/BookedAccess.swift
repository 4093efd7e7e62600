import Configuration
import Domain
import Encoding
import FleetClient
import Glibc
import Provisioning
import StepProtocol
import SystemIO
import Terminal

/// A booking's access file, fetched and put where `config import` puts one.
struct BookedAccess {
  let place: VehicleStore.Place
  /// The operator's key, where this device did not know the vehicle before.
  let newOperator: Thumbprint?

  /// Fetches and imports it. The server vouches for the operator: the rider trusts it with the booking.
  ///
  /// - Parameter identity: of this device, where it was prepared.
  init(
    of booking: Booking, from client: FleetClient, _ context: Context,
    identity prepared: EnrolledDevice.Identity? = nil
  ) throws {
    let device = try EnrolledDevice(context.folders)
    _ = try device.prepare()
    let identity = try prepared ?? device.identity()
    // A user's name may have letters that a rider's may not have; "rider" has none of those.
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

  /// The error where the server did what was asked, and the access could not be fetched.
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
  /// The file of its vehicle; nil where its access was not fetched yet.
  let vehicleFile: String?

  /// Nil where somebody named a vehicle, and where none or several are booked now.
  init?(_ settings: Settings, _ context: Context) throws {
    // Whoever has no account has no such file, and loses no time.
    guard settings.vehicle.value == nil, let folder = try? context.fleetFolder() else { return nil }
    let active = folder.bookings().filter { $0.isActive(at: context.seconds) }
    guard let booking = active.first, active.count == 1 else { return nil }
    self.booking = booking
    vehicleFile = try Self.file(of: booking.vehicle, settings)
  }

  private static func file(of vehicle: UUID, _ settings: Settings) throws -> String? {
    try settings.folders.vehicles().first { (try? VehicleFile(reading: $0.path))?.vehicle.uuid == vehicle }?.path
  }

  /// The vehicle's file, with access that counts now. It is fetched where it is not here.
  func fetched(_ context: Context, _ interruption: Interruption, _ console: Console) throws -> VehicleFile {
    let known = try vehicleFile.map(VehicleFile.init(reading:))
    if let known, known.opens(at: context.seconds) { return known }
    console.note("fetching the access of the booking \(booking.shortID)")
    do {
      return try VehicleFile(
        reading: BookedAccess(of: booking, from: context.fleet(interruption), context).place.vehicleFile)
    } catch let error as any Failure {
      guard let known, !error.isInterruption else { throw error }
      // The clock of this computer may be wrong: the vehicle's decides.
      console.note("the access was not fetched: \(printable(error.description))")
      return known
    }
  }
}

extension VehicleFile {
  /// The rider's token, where there is one that can be read.
  fileprivate var token: Token? { rider.flatMap { try? Token(unverified: KeyFile.token($0.token)) } }

  /// Whether there is a token whose times hold now.
  fileprivate func opens(at now: Int64) -> Bool { token.map { $0.notBefore <= now && now < $0.expires } ?? false }

  /// How long before a token's end a new one is fetched, seconds.
  private static let renewal: Int64 = 300
  /// How long that may take. A rider stands at the step meanwhile.
  private static let patience = Duration.seconds(2)

  /// This file with newer access, where its access ends soon and came from a fleet's server, and the server gives more
  /// in time; nil in all other cases.
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
  /// The path of the vehicle file that is meant: the one that was named, that of the active booking, the only one, or
  /// of several the only one that can be opened now.
  func chosenVehicleFile(_ context: Context) throws -> String {
    try ActiveBooking(self, context)?.vehicleFile ?? usableVehicleFile(at: context.seconds)
  }

  /// The file that is chosen where no booking is active.
  func usableVehicleFile(at now: Int64) throws -> String {
    try vehicleFile { path in (try? VehicleFile(reading: path))?.opens(at: now) ?? false }
  }
}

extension Booking {
  /// What it is called: the vehicle's name.
  var title: String { name ?? vehicle.description }
  /// Enough of the id to tell a person's bookings apart.
  var shortID: String { String(id.prefix(8)) }

  /// What a program is told.
  func report(vehicleFile: String? = nil) -> JSON {
    .object(
      (json.object ?? []).filter { $0.name != "etag" }
        + [.init("vehicle_file", vehicleFile.map(JSON.string) ?? .null)])
  }
}
