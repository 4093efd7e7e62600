import CommandParts
import Domain
import FileFormats
import Glibc
import MQTT
import Rider
import StepProtocol
import SystemIO
import Terminal

/// The rider's access to a vehicle, as a command uses it.
///
/// While a booking of the vehicle is active, access that is lost, damaged, withdrawn or about to end is fetched from
/// the fleet's server, which gets two seconds. Access that the vehicle takes is never waited for.
struct CurrentAccess {
  private(set) var file: VehicleFile
  private(set) var rider: RiderAccess
  /// TLS for the vehicle's broker, prepared while the keys are read; nil where that is of no use.
  private(set) var preparation: TLSPreparation?
  private let context: Context
  private let interruption: Interruption
  private let console: Console
  private var lastFetch: Instant?

  /// How long before a token's end a new one is fetched, seconds.
  private static let renewal: Int64 = 300
  /// How long that may take. The rider stands at the step meanwhile.
  private static let patience = Duration.seconds(2)
  /// How long nothing is fetched again.
  private static let pause = Duration.seconds(60)

  /// - Parameter renewsEarly: whether a token that ends soon is renewed before it is used.
  /// - Throws: why there is no access, if the server does not give it either.
  init(
    _ file: VehicleFile, _ context: Context, _ interruption: Interruption, _ console: Console, renewsEarly: Bool = true
  ) throws {
    (self.context, self.interruption, self.console) = (context, interruption, console)
    self.file = file
    let booking = context.activeBooking(of: file.vehicle.uuid)
    do {
      preparation = try file.tlsPreparation()
      rider = try file.riderAccess(unlock: context.unlock(interruption))
      // A controller does not answer a token whose signature is wrong. Without a booking there is no other token.
      if booking != nil { try file.checkSignature(of: rider) }
    } catch let error as any Failure where file.canMend(error) {
      guard let booking, let newer = try Self.fetch(booking, context, interruption, console) else { throw error }
      self.file = newer
      preparation = nil
      rider = try newer.riderAccess(unlock: context.unlock(interruption))
      lastFetch = context.clocks.steady()
      tell()
      return
    }
    if renewsEarly, let booking, rider.token.expires - context.seconds < Self.renewal { try renew(booking) }
  }

  /// Fetches the access again if that can mend a command's failure.
  ///
  /// - Returns: whether there is other access now.
  mutating func isMended(after error: any Error) throws -> Bool {
    guard let failure = error as? any Failure, file.canMend(failure), isTimeToFetch,
      let booking = context.activeBooking(of: file.vehicle.uuid)
    else { return false }
    console.progress.clear()
    guard try renew(booking) else { return false }
    tell()
    return true
  }

  private func tell() { console.note("access", "fetched again from the operator's server") }

  private var isTimeToFetch: Bool {
    lastFetch.map { $0.duration(to: context.clocks.steady()) >= Self.pause } ?? true
  }

  @discardableResult
  private mutating func renew(_ booking: Booking) throws -> Bool {
    lastFetch = context.clocks.steady()
    guard let newer = try Self.fetch(booking, context, interruption, console) else { return false }
    let before = rider.tokenText
    file = newer
    // The rider's certificate may be another one.
    preparation = nil
    rider = try newer.riderAccess(unlock: context.unlock(interruption))
    return rider.tokenText != before
  }

  /// - Returns: nil if the server does not give access in time.
  private static func fetch(
    _ booking: Booking, _ context: Context, _ interruption: Interruption, _ console: Console
  ) throws -> VehicleFile? {
    do {
      console.detail("fetching the access of the booking \(booking.shortID)")
      let client = try context.fleet(interruption, deadline: context.clocks.steady() + Self.patience)
      return try VehicleFile(reading: BookedAccess(of: booking, from: client, context).place.vehicleFile)
    } catch let error as any Failure where !error.isInterruption {
      console.detail("the access was not renewed: \(error.description)")
      return nil
    }
  }

  // MARK: - What a refusal means

  /// What a refusal means for the rider's booking; nil if nothing more is known.
  ///
  /// The operator may have cancelled the booking since this device heard of it, so the server is asked.
  func meaning(of failure: any Failure) -> String? {
    guard case .refused(let refusal, _)? = failure as? RiderError,
      [.tokenNotYetValid, .tokenRevoked].contains(refusal.code)
    else { return nil }
    let (vehicle, begin) = (file.vehicle.uuid, rider.token.notBefore)
    // A token is valid from its booking's begin on. One that was booked again is meant, and not the cancelled one.
    let all = ((try? context.fleetFolder())?.bookings() ?? []).filter { $0.vehicle == vehicle && $0.from == begin }
    guard let known = all.last(where: \.isLive) ?? all.last else { return nil }
    let client = try? context.fleet(interruption, deadline: context.clocks.steady() + Self.patience)
    let booking = (try? client?.booking(known.id)) ?? known
    if !booking.isLive { return "your booking \(booking.shortID) is \(booking.state)" }
    return refusal.code == .tokenNotYetValid ? "your booking begins at \(dateAndTime(booking.from))" : nil
  }

  // MARK: - What `stepctl` alone says later

  /// Remembers a refusal.
  func remember(_ failure: any Failure) {
    guard case .refused(let refusal, _)? = failure as? RiderError else { return }
    RememberedRefusal(
      time: context.seconds, vehicle: file.vehicle.uuid, refusal: refusal, token: rider.token.id,
      booking: context.activeBooking(of: file.vehicle.uuid)?.id
    ).keep(in: context.folders)
  }

  /// The vehicle has obeyed.
  func forgetRefusal() { RememberedRefusal.forget(of: file.vehicle.uuid, in: context.folders) }
}

extension VehicleFile {
  /// Whether other access from the fleet's server would mend it. Without the device's own key there is no login either.
  fileprivate func canMend(_ failure: any Failure) -> Bool {
    guard let rider, Files.exists(rider.deviceKey), !failure.isInterruption else { return false }
    // The key of the certificate is made again where it is missing.
    let fetched = accessFiles + privateKeys.filter { $0 != rider.deviceKey }
    switch failure {
    case let error as ConfigurationError: return error.kind == .invalid && fetched.contains(error.path)
    case let error as SystemError: return error.code == ENOENT && fetched.contains(error.subject)
    case StoreError.lostKey(let path): return fetched.contains(path)
    case MQTTError.unusableFile(_, let path, _): return fetched.contains(path)
    case RiderError.notSent(let reason): return canMend(reason)
    case RiderError.refused(let refusal, _): return [.tokenRevoked, .tokenExpired].contains(refusal.code)
    default: return false
    }
  }

  fileprivate func checkSignature(of access: RiderAccess) throws {
    guard let operatorKey, let path = rider?.token else { return }
    do throws(ProtocolError) { _ = try Token(verifying: access.tokenText, by: operatorKey) } catch {
      // Another error says that the operator has another key by now.
      if error == .badSignature {
        throw ConfigurationError(path, "the token is damaged: its signature is not the operator's")
      }
    }
  }
}
