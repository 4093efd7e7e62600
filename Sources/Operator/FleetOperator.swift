public import Access
import Certificates
public import Domain
import FileFormats
import Glibc
import MQTT
public import StepProtocol
import SystemIO

/// The operator of several vehicles, for a server that grants access automatically. It does what `stepctl operator` and
/// `stepctl provision token` do, with the same folder, but notes tokens and revocations nowhere: the server does. Its
/// calls read and write files.
///
/// Errors are `Failure`s with a line that an operator understands.
public struct FleetOperator: Sendable {
  private let place: OperatorPlace

  /// Why a certificate request is refused, although the folder is in order: it is damaged, or asks for something that
  /// is not allowed. The text names no file.
  public struct Refusal: Failure, Equatable {
    public let description: String
    public var exitStatus: ExitStatus { .badData }
  }

  /// - Parameter path: the folder that `create`, or `stepctl operator init`, has made.
  public init(_ path: String) { place = OperatorPlace(path) }

  /// Creates a new operator: the complete folder, or nothing.
  ///
  /// - Parameters:
  ///   - host: a host name or an IP address at which vehicles and riders reach the broker.
  ///   - plugin: as in `setBrokerPlugin`.
  ///   - now: Unix time, from which the certificates are valid.
  public static func create(
    _ path: String, host: String, port: UInt16, plugin: String? = nil, now: Int64
  ) throws -> FleetOperator {
    guard let host = BrokerHost(host) else {
      throw ConfigurationError(path, "\(host): expected a host name or an IP address")
    }
    _ = try OperatorPlace(path).initialize(at: BrokerAddress(host: host, port: port), plugin: plugin, now: now)
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
    try place.checkClock(now)
    // A backup contains files, but no empty folders and no links.
    for (folder, mode) in [(VehiclePaths.data, 0o700), (VehiclePaths.vehicles, 0o755)] as [(String, mode_t)] {
      try Files.createFolder(place.path(folder), mode: mode)
    }
    for vehicle in try place.vehicles() { try vehicle.linkOperator() }
    try BrokerConfiguration.giveAway(in: place.path)
    _ = try place.moveBroker(to: place.broker(), now: now)
  }

  /// The authority's certificate, DER.
  public func authority() throws -> [UInt8] {
    let path = place.path(VehiclePaths.authorityCertificate)
    let certificate = try VehicleFolder(place.path).readCertificate(VehiclePaths.authorityCertificate)
    return try about(path) { try certificate.der() }
  }

  /// The valid keys, the present one first.
  public func keys() throws -> [VerificationKey] { try place.keys().counting }

  /// Those of them that sign tokens, or did: the present one, and the one before.
  public func signers() throws -> [VerificationKey] {
    let keys = try place.keys()
    return [keys.present, keys.previous].compactMap { $0?.verificationKey }
  }

  // MARK: - Vehicles

  /// The vehicle whose public part is in the folder of that name; nil if there is none.
  public func record(_ name: String) throws -> VehicleRecord? {
    guard let name = RiderName(name) else { return nil }
    let folder = place.record(of: name.description)
    return Files.exists(folder.path) ? try VehicleRecord(reading: folder) : nil
  }

  /// Issues the certificate of a vehicle that joins. Whose id and topic it has is for the server to know.
  public func admit(_ enrolment: VehicleEnrolment, now: Int64) throws -> VehicleAdmission {
    _ = try Self.certificateRequest(enrolment.certificateRequest, name: "controller")
    return try place.admitter().admit(enrolment, now: now)
  }

  private static func certificateRequest(_ der: [UInt8], name: String) throws(Refusal) -> CertificateRequest {
    do { return try CertificateRequest(der: der, name: name) } catch {
      throw Refusal(description: "the certificate request: \(error)")
    }
  }

  /// The names of the folders with vehicles' public parts.
  public func folders() throws -> Set<String> {
    Set(try Files.names(in: place.path(VehiclePaths.vehicles)).filter { !$0.hasPrefix(".") })
  }

  /// Puts vehicles' public parts into the folder, and takes those of removed vehicles away. The broker's lists have to
  /// be written afterwards.
  ///
  /// - Parameters:
  ///   - new: by the names of their folders. A folder that is there stays as it is.
  ///   - former: the folders of removed vehicles with their ids. A copy of what is removed stays, as `.removed-NAME`.
  public func keep(_ new: [String: VehicleRecord], without former: [String: Set<UUID>]) throws {
    try place.alone {
      for (name, ids) in former { try removeRecord(name, of: ids) }
      let present = try folders()
      let key = try place.keys().present.verificationKey
      let (broker, authority) = (try place.broker().broker(), try authorityPEM())
      for (name, vehicle) in new where !present.contains(name) {
        guard RiderName(name) != nil else { throw ProvisioningError.unusableFolderName(name) }
        try place.record(of: name).create([
          NewFile(VehiclePaths.authorityCertificate, authority),
          NewFile(VehiclePaths.controllerCertificate, vehicle.certificate),
          NewFile(VehiclePaths.vehicle, vehicle.file(operatorKey: key, broker: broker).render()),
        ])
      }
    }
  }

  /// Writes mosquitto's list of who may use which topics, which mosquitto reads again on SIGHUP, and its plugin's list
  /// of removed vehicles, which the plugin reads within a second.
  ///
  /// - Parameters:
  ///   - known: vehicles by the names of their folders; those of other folders are read there.
  ///   - others: the names of the folders of those that the plugin knows.
  ///   - former: vehicles whose clients may do nothing any more.
  public func writeAccessList(
    knowing known: [String: VehicleTopics], without others: Set<String> = [], former: Set<UUID> = []
  ) throws {
    try place.writeAccessList(knowing: known, without: others)
    try place.writeFormerVehicles(former)
  }

  /// Does nothing if there is no folder of that name, or if it is another vehicle's.
  private func removeRecord(_ name: String, of vehicles: Set<UUID>) throws {
    let record = place.record(of: name)
    guard RiderName(name) != nil, Files.exists(record.path),
      try vehicles.contains(record.readVehicleFile().vehicle.uuid)
    else { return }
    let kept = "\(Files.parent(of: record.path))/.removed-\(name)"
    try StagingFolder.remove(kept)
    try StagingFolder.move(record.path, to: kept)
  }

  // MARK: - Access

  /// Signs a device's access to a vehicle. It is noted nowhere: the server's database does that before the device has
  /// it, and decides whether the device may have it.
  ///
  /// - Parameters:
  ///   - subject: the operator's name for the rider: 1 to 64 letters, digits, `.`, `-` and `_`.
  ///   - steps: steps of the vehicle, in any order.
  ///   - validity: Unix time, the end exclusive.
  ///   - now: Unix time.
  ///
  /// - Returns: a token, and a certificate that lasts as long, or a day; and what to note of both.
  /// - Throws: also `Refusal`.
  public func grant(
    _ vehicle: VehicleRecord, subject: String, steps: [StepID], validity: Range<Int64>, to request: DeviceRequest,
    now: Int64
  ) throws -> (file: AccessFile, entry: Ledger.Entry) {
    guard let rider = RiderName(subject) else { throw RequestError.unusableName(subject) }
    _ = try Self.certificateRequest(request.certificateRequest, name: "rider")
    // A booking can have begun before a new operator.
    let begin = max(validity.lowerBound, try place.issueTime(now).bounds.lowerBound)
    let plan = TokenPlan(rider: rider, steps: steps, notBefore: begin, lifetime: validity.upperBound - begin)
    let broker = try place.broker().broker(authority: place.path(VehiclePaths.authorityCertificate))
    let file = vehicle.file(operatorKey: try place.keys().present.verificationKey, broker: broker)
    return try AccessSigner(for: file, of: place).sign(plan, to: request, now: now, days: 1)
  }

  /// What was given and revoked by hand, and what the server has put there.
  public func ledger(now: Int64) throws -> Ledger {
    // A clock that is ahead would forget tokens that could still be revoked.
    try place.checkClock(now)
    return try place.ledger()
  }

  /// Puts what the server knows in the place of what it has read: commands by hand then revoke nothing less, and the
  /// broker has the list of certificates that it must refuse. What came since the reading stays.
  public func keep(_ known: Ledger, inPlaceOf read: Ledger, now: Int64) throws {
    try place.checkClock(now)
    try place.change { $0.replace(read, by: known) }
    try place.writeRevocationList(now: now)
  }

  // MARK: - The broker

  /// The path of the plugin that mosquitto asks what its clients may do; nil if its list has all vehicles.
  public func brokerPlugin() throws -> String? { try place.brokerRecord().plugin }

  /// Writes mosquitto's files again, which it reads when it starts.
  ///
  /// - Parameter plugin: the plugin's path on the broker's computer, absolute; nil for a list of all vehicles.
  public func setBrokerPlugin(_ plugin: String?) throws { try place.setBrokerPlugin(plugin) }

  // MARK: - Notices

  /// Begins to connect to the vehicles' broker.
  ///
  /// - Parameter port: that of one of its nodes; nil for the recorded one.
  public func connect(port: UInt16? = nil) throws -> BrokerConnection { try connect(port: port, .toPublish) }

  private func connect(port: UInt16?, _ purpose: BrokerConnection.Purpose) throws -> BrokerConnection {
    let broker = try place.broker()
    return try BrokerConnection(
      place.asOperator(Broker(host: broker.host.description, port: port ?? broker.port, tls: nil)), purpose)
  }

  /// What a configuration for RabbitMQ has to know about this operator.
  public struct BrokerFiles: Sendable {
    /// The address to listen at; nil for all of this computer.
    public let address: String?
    public let port: UInt16
    /// Paths, absolute. The folder has the list of certificates that the broker must refuse, under the name by which
    /// OpenSSL finds it.
    public let authority, certificate, key, revocationFolder: String
  }

  /// - Throws: also `ProvisioningError.unusablePath`, for a path that a configuration cannot have.
  public func brokerFiles() throws -> BrokerFiles {
    let broker = try place.broker()
    let record = BrokerRecord(address: broker, plugin: nil)
    let folder = try BrokerConfiguration(folder: place.path, record, owner: 0).folder
    func path(_ name: String) -> String { "\(folder)/\(name)" }
    return BrokerFiles(
      address: broker.host.loopbackAddress, port: broker.port, authority: path(VehiclePaths.authorityCertificate),
      certificate: path(VehiclePaths.brokerCertificate), key: path(VehiclePaths.brokerKey),
      revocationFolder: path(VehiclePaths.tls))
  }

  // MARK: - Events

  public func eventOpener() throws -> EventOpener { EventOpener(try place.eventKeys()) }

  /// Begins to connect to the vehicles' broker, for what vehicles report.
  public func listen(port: UInt16? = nil) throws -> BrokerConnection { try connect(port: port, .toListen) }

  /// The last event of a vehicle that the folder has; nil if it has none.
  public func lastEvent(of vehicle: UUID) throws -> EventPlace? { try place.archive(of: vehicle).last()?.place }

  /// What the folder has of a vehicle's events, beginning after that place, or the last ones if it is nil.
  ///
  /// - Parameters:
  ///   - key: the vehicle's. The folder's files may have been changed, and the vehicle may have had another key: only
  ///     what follows the last such event is returned.
  ///   - count: the most that are returned: the first ones after the place.
  public func events(
    of vehicle: UUID, verifiedBy key: VerificationKey, after place: EventPlace?, upTo count: Int
  ) throws -> [SignedEvent] {
    var events: [SignedEvent] = []
    var isAfter = place == nil
    try self.place.archive(of: vehicle).read { event in
      if isAfter, place == nil || events.count < count { events.append(event) }
      if events.count >= 2 * count { events.removeFirst(count) }
      if event.place == place { (isAfter, events) = (true, []) }
    }
    let foreign = events.lastIndex { (try? VehicleEvent(verifying: $0.text, by: key)) == nil }
    return events[(foreign.map { $0 + 1 } ?? 0)...].suffix(count)
  }

  /// Lets the folder have events, for commands by hand.
  ///
  /// - Parameter place: the last event that the folder is thought to have.
  /// - Returns: false if it has another one meanwhile, or if a command by hand keeps the events itself.
  public func keep(_ events: [SignedEvent], of vehicle: UUID, after place: EventPlace?) throws -> Bool {
    let archive = self.place.archive(of: vehicle)
    do {
      let writer = try archive.writer()
      guard try archive.last()?.place == place else { return false }
      try writer.append(events)
    } catch EventError.inUse {
      return false
    }
    return true
  }

  /// - Throws: also `ClockError`, at a time at which nothing may be issued.
  public func noticeWriter(now: Int64) throws -> NoticeWriter { try NoticeWriter(place, now: now) }

  /// The number of the last notice that a key change or `stepctl` has numbered.
  public func lastNumber() throws -> Int64 { try place.ledger().sequence }

  /// The number of a notice by one of the operator's keys; nil if the payload is none.
  public func number(ofNotice payload: [UInt8]) throws -> Int64? {
    let keys = try keys()
    return try? Notice.read(payload, verifiedBy: keys)?.sequence
  }

  /// When certificates end, Unix time: `authority`, `operator` and `broker`, and `vehicle` for the one of all vehicles
  /// that ends first. Riders' certificates end with their tokens.
  public func certificateEnds() throws -> [String: Int64] {
    let authority = place.path(VehiclePaths.authorityCertificate)
    var ends = try [
      "authority": about(authority) {
        try VehicleFolder(place.path).readCertificate(VehiclePaths.authorityCertificate).end()
      }
    ]
    for certificate in try place.certificates() {
      let holder: String
      switch certificate.holder {
      case .operator: holder = "operator"
      case .broker: holder = "broker"
      case .controller: holder = "vehicle"
      }
      ends[holder] = min(ends[holder] ?? .max, certificate.end)
    }
    return ends
  }

  /// Takes the next step of a key change; notices must then tell the vehicles.
  ///
  /// - Parameter number: the greatest number of a notice so far.
  /// - Returns: what was done, as text for people, and the number that later notices must exceed.
  public func rotateKeys(
    above number: Int64, next: [UInt8]? = nil, now: Int64
  ) throws -> (text: String, number: Int64) {
    try place.checkClock(now)
    try place.change { $0.raise(to: number) }
    // A server publishes until the broker has the notices, and an absent vehicle receives its notice before any
    // command. So the change need not wait for an absent vehicle.
    let text =
      switch try place.rotateKeys(now: now, force: true, next: next) {
      case .announced(let key): "the next key is \(key); vehicles learn of it now"
      case .switched(let key): "the key \(key) signs from now on; the one before still counts"
      }
    return (text, try lastNumber())
  }

  /// Ends a key change; notices must then tell the vehicles. Refused while a vehicle from before the change has not
  /// confirmed the new key by an event: from the next notice on, that vehicle would obey nobody.
  ///
  /// - Parameter tokens: those that count.
  public func retireKey(tokens: [Ledger.Entry], now: Int64) throws {
    // All vehicles obey the present key, so its notices replace these last ones by the old key.
    _ = try place.retireKey(tokens: tokens, now: now, force: false, unheard: false)
  }
}
