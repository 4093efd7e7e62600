import Certificates
public import Domain
import FileFormats
import Glibc
import MQTT
public import StepProtocol
public import SystemIO

/// The operator of several vehicles, for a server that grants access automatically. It does what `stepctl operator` and
/// `stepctl provision token` do, in the same folder. Its calls read and write files, and `publish` waits for the
/// broker.
///
/// Errors are `Failure`s with a line that an operator understands.
public struct FleetOperator: Sendable {
  private let place: OperatorPlace

  /// The most unexpired tokens, revoked ones included: for one vehicle, and for one device at that vehicle.
  ///
  /// A server grants tokens unattended, and one notice must be able to revoke all of them.
  static let mostTokens = (vehicle: 64, device: 16)

  /// Why a request is refused, although the folder is in order. The text names no file.
  public enum Refusal: Failure, Equatable {
    /// The certificate request is damaged, or asks for something that is not allowed.
    case request(String)
    /// With one more token, a single notice could not revoke all tokens.
    ///
    /// - Parameter until: when the next of these tokens ends, Unix time.
    case tooMany(until: Int64)

    public var exitStatus: ExitStatus {
      switch self {
      case .request: .badData
      case .tooMany: .failure
      }
    }

    public var description: String {
      switch self {
      case .request(let reason): reason
      case .tooMany: "too many tokens for the vehicle or the device have not ended"
      }
    }

    public var hint: String? {
      switch self {
      case .request: nil
      case .tooMany: "more can be had when some have ended"
      }
    }
  }

  /// - Parameter path: the folder that `create`, or `stepctl operator init`, has made.
  public init(_ path: String) { place = OperatorPlace(path) }

  /// Creates a new operator: the complete folder, or nothing.
  ///
  /// - Parameters:
  ///   - host: a host name or an IP address at which vehicles and riders reach the broker.
  ///   - now: Unix time, from which the certificates are valid.
  public static func create(_ path: String, host: String, port: UInt16, now: Int64) throws -> FleetOperator {
    guard let host = BrokerHost(host) else {
      throw ConfigurationError(path, "\(host): expected a host name or an IP address")
    }
    _ = try OperatorPlace(path).initialize(host: host, port: port, now: now)
    return FleetOperator(path)
  }

  /// Issues a certificate of the operator's authority for a server, with a new key.
  ///
  /// - Returns: PEM.
  public func serverCertificate(for host: String, now: Int64) throws -> (certificate: [UInt8], key: [UInt8]) {
    guard let host = BrokerHost(host) else {
      throw ConfigurationError(place.path, "\(host): expected a host name or an IP address")
    }
    let authority = try VehicleFolder(place.path).readAuthority()
    return try about(place.path) {
      let key = try PrivateKey()
      return (try authority.issue(.broker(host), to: key, now: now).pem(), try key.pem())
    }
  }

  /// The authority's certificate, PEM.
  public func authorityPEM() throws -> [UInt8] { try Files.readRegular(place.path(VehiclePaths.authorityCertificate)) }

  /// Rewrites the files that contain absolute paths or belong to the broker's user, after the folder was copied
  /// elsewhere.
  public func relocate(now: Int64) throws {
    let data = place.path(VehiclePaths.data)
    try Files.createFolder(data, mode: 0o700)
    // A backup contains files, but no empty folders.
    try Files.createFolder(place.path(VehiclePaths.vehicles), mode: 0o755)
    let owner = BrokerConfiguration.owner
    for path in [place.path(VehiclePaths.brokerKey), data] where owner != geteuid() {
      _ = try check("give away", path) { chown(path, owner, gid_t.max) }
    }
    let broker = try place.broker()
    _ = try place.moveBroker(to: broker.host, broker.port, now: now)
  }

  /// Those of the tokens, by their `jti`, that the ledger does not know. They could not be revoked.
  public func unknown(_ tokens: [String]) throws -> [String] {
    let known = Set(try place.ledger().tokens.map(\.id))
    return tokens.filter { !known.contains($0) }
  }

  /// The authority's certificate, DER.
  public func authority() throws -> [UInt8] {
    let path = place.path(VehiclePaths.authorityCertificate)
    let certificate = try VehicleFolder(place.path).readCertificate(VehiclePaths.authorityCertificate)
    return try about(path) { try certificate.der() }
  }

  /// The valid keys, the present one first.
  public func keys() throws -> [VerificationKey] { try place.keys().counting }

  // MARK: - Vehicles

  /// The vehicle whose public part is in the folder of that name; nil if there is none.
  public func vehicle(_ name: String) throws -> Vehicle? {
    guard let name = RiderName(name) else { return nil }
    let record = place.record(of: name.description)
    return Files.exists(record.path) ? try record.readVehicleFile().vehicle : nil
  }

  /// The request of a vehicle that joins. The vehicle has made its private keys, and keeps them.
  public struct Application: Sendable {
    public let vehicle: Vehicle
    public let topic: TopicPrefix
    public let encryptionKey: EncryptionKey
    public let statementKey: VerificationKey
    /// PKCS #10, DER, for the name `controller`.
    public let certificateRequest: [UInt8]

    public init(
      vehicle: Vehicle, topic: TopicPrefix, encryptionKey: EncryptionKey, statementKey: VerificationKey,
      certificateRequest: [UInt8]
    ) {
      self.vehicle = vehicle
      self.topic = topic
      self.encryptionKey = encryptionKey
      self.statementKey = statementKey
      self.certificateRequest = certificateRequest
    }
  }

  /// The answer to a vehicle that joins.
  public struct Admission: Sendable {
    public let keys: [VerificationKey]
    public let host: String
    public let port: UInt16
    /// PEM.
    public let authority: [UInt8]
    /// PEM.
    public let certificate: [UInt8]
    /// When the certificate ends, Unix time.
    public let end: Int64
  }

  /// Admits a vehicle. Its folder gets the UUID as its name. The server makes the vehicles' names unique, because a
  /// vehicle that is being removed may still be here when its name is free again.
  ///
  /// - Throws: also if there is a vehicle with that UUID or topic.
  public func admit(_ application: Application, now: Int64) throws -> Admission {
    let broker = try place.broker()
    let record = place.record(of: application.vehicle.uuid.description)
    for known in try place.vehicles() {
      let file = try known.readVehicleFile()
      guard file.vehicle.uuid != application.vehicle.uuid, file.topic != application.topic else {
        throw LedgerError.taken(known.path)
      }
    }
    let keys = try place.keys()
    let authorityPEM = try authorityPEM()
    let authority = try VehicleFolder(place.path).readAuthority()
    let request = try Self.certificateRequest(application.certificateRequest, name: "controller")
    let (certificate, end) = try about(place.path) {
      let certificate = try authority.issue(
        .controller(of: application.vehicle.uuid), for: request, now: now, lastingUntil: 0)
      return (try certificate.pem(), try certificate.end())
    }
    let file = VehicleFile(
      path: VehiclePaths.vehicle, vehicle: application.vehicle, operatorKey: keys.present.verificationKey,
      topic: application.topic,
      broker: Broker(
        host: broker.host.description, port: broker.port,
        tls: .init(authority: VehiclePaths.authorityCertificate, identity: nil)),
      controller: .init(encryption: application.encryptionKey, signing: application.statementKey))
    try record.create([
      NewFile(VehiclePaths.authorityCertificate, authorityPEM),
      NewFile(VehiclePaths.controllerCertificate, certificate), NewFile(VehiclePaths.vehicle, file.render()),
    ])
    try place.writeAccessList()
    return Admission(
      keys: keys.counting, host: broker.host.description, port: broker.port, authority: authorityPEM,
      certificate: certificate, end: end)
  }

  private static func certificateRequest(_ der: [UInt8], name: String) throws(Refusal) -> CertificateRequest {
    do { return try CertificateRequest(der: der, name: name) } catch {
      throw .request("the certificate request: \(error)")
    }
  }

  /// Removes a vehicle. From the next reading of its access list on, the broker refuses the vehicle's clients. A copy
  /// of the public part stays, as `.removed-NAME`.
  public func remove(_ name: String) throws {
    let record = place.record(of: name)
    let kept = "\(Files.parent(of: record.path))/.removed-\(record.name)"
    try StagingFolder.remove(kept)
    try StagingFolder.move(record.path, to: kept)
    try place.writeAccessList()
  }

  // MARK: - Access

  /// Gives a device access to a vehicle.
  ///
  /// - Parameters:
  ///   - name: the name of the vehicle's folder.
  ///   - subject: the operator's name for the rider: 1 to 64 letters, digits, `.`, `-` and `_`.
  ///   - steps: steps of the vehicle, in any order.
  ///   - validity: Unix time, the end exclusive.
  ///   - now: Unix time.
  ///
  /// - Returns: a token, and a certificate that lasts as long, or a day. Nil if the device was revoked, and gets
  ///   nothing more for now.
  /// - Throws: also `Refusal`, if a notice could not revoke one more token.
  public func grant(
    _ name: String, subject: String, steps: [StepID], validity: Range<Int64>, to request: DeviceRequest, now: Int64
  ) throws -> AccessFile? {
    guard let rider = RiderName(subject) else { throw RequestError.unusableName(subject) }
    let vehicle = try place.record(of: name).vehicle().uuid
    let lasting = try place.ledger().tokens.filter { $0.vehicle == vehicle && $0.expires > now }
    let own = lasting.filter { $0.device == request.device.thumbprint }
    for (tokens, most) in [(own, Self.mostTokens.device), (lasting, Self.mostTokens.vehicle)] where tokens.count >= most
    {
      throw Refusal.tooMany(until: tokens.map(\.expires).sorted()[tokens.count - most])
    }
    _ = try Self.certificateRequest(request.certificateRequest, name: "rider")
    let plan = TokenPlan(
      rider: rider, steps: steps, notBefore: validity.lowerBound,
      lifetime: validity.upperBound - validity.lowerBound)
    do {
      return try place.record(of: name).grantAccess(plan, to: request, now: now, days: 1)
    } catch LedgerError.deviceRevoked {
      return nil
    }
  }

  /// Removes entries that ended more than a day ago. A server's tokens last a day at most, and every new token reads
  /// and writes the whole ledger.
  public func tidy(now: Int64) throws {
    let known = try place.ledger()
    var left = known
    left.forget(endedBefore: now - 86_400)
    if left != known { try place.change { $0.forget(endedBefore: now - 86_400) } }
  }

  /// Revokes tokens and devices. It takes effect for a vehicle when its notice arrives there.
  ///
  /// - Returns: the revoked tokens, by their `jti`; empty if all of them had ended.
  public func revoke(_ subjects: [Notice.Subject], now: Int64) throws -> [String] {
    do { return try place.revoke(subjects, now: now).entries.map(\.id) } catch LedgerError.nothingToRevoke { return [] }
  }

  /// Leaves new notices with the broker, which keeps them for the vehicles, and waits until the broker has them. A
  /// failure for one vehicle does not stop the others.
  ///
  /// - Parameters:
  ///   - vehicles: the vehicles that need the notice.
  ///   - patience: the time limit for one notice.
  ///   - deadline: after this, no further notice is begun.
  /// - Returns: the vehicles without the notice, and why.
  public func publish(
    to vehicles: Set<UUID>, now: Int64, patience: Duration = .seconds(10), until deadline: Instant
  ) throws -> [UUID: any Error] {
    var untold: [UUID: any Error] = [:]
    // In a random order, so that slow vehicles are not always the first.
    for folder in try place.vehicles().shuffled() {
      // A vehicle whose file cannot be read is identified by its folder.
      guard let vehicle = (try? folder.vehicle().uuid) ?? UUID(folder.name), vehicles.contains(vehicle) else {
        continue
      }
      do {
        guard .now < deadline else { throw LedgerError.noAnswer("the broker") }
        try place.letter(for: folder, now: now).publish(until: .now + patience)
      } catch {
        untold[vehicle] = error
      }
    }
    return untold
  }

  /// Takes the next step of a key change; `publish` must then tell the vehicles.
  ///
  /// - Returns: what was done, as text for people.
  public func rotateKeys(now: Int64) throws -> String {
    // A server publishes until the broker has the notices, and an absent vehicle receives its notice before any
    // command. So the change need not wait for an absent vehicle.
    switch try place.rotateKeys(now: now, force: true) {
    case .announced(let key): "the next key is \(key); vehicles learn of it now"
    case .switched(let key): "the key \(key) signs from now on; the one before still counts"
    }
  }

  /// Ends a key change; `publish` must then tell the vehicles. Refused while a vehicle from before the change has not
  /// confirmed the new key by an event: from the next notice on, that vehicle would obey nobody.
  public func retireKey(now: Int64) throws {
    // All vehicles obey the present key, so its notices replace these last ones by the old key.
    _ = try place.retireKey(now: now, force: false, unheard: false)
  }
}
