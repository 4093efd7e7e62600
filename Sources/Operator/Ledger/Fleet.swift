import Certificates
import Domain
import Encoding
import FileFormats
import Glibc
import MQTT
package import StepProtocol
import SystemIO

/// An operator of several vehicles: one key, one authority and one broker for all of them.
///
///     operator/, tls/                  as in the folder of a vehicle
///     operator/fleet.json              where the broker is
///     mosquitto.*, rabbitmq*           the broker for all vehicles: one of the two
///     data/                            what the broker keeps over a restart
///     vehicles/NAME/                   a vehicle's file, without anything private
extension OperatorPlace {
  /// Whether it is the folder of an operator of several vehicles.
  var isFleet: Bool { Files.exists(path(VehiclePaths.fleet)) }

  /// Creates a new operator's folder completely, or not at all.
  ///
  /// - Parameter now: Unix time, from which the certificates are valid.
  /// - Returns: the key that signs tokens, and the end of the broker's certificate.
  package func initialize(host: BrokerHost, port: UInt16, now: Int64) throws -> (Thumbprint, certificateEnd: Int64) {
    if Files.exists(path) {
      guard Files.isFolder(path), try Files.names(in: path).isEmpty else { throw LedgerError.inTheWay(path) }
    }
    let new = "\(Files.parent(of: path))/.\(Files.name(of: path)).new"
    guard !Files.exists(new) else { throw LedgerError.interrupted(new) }
    try Files.createFolder(path, mode: 0o755)
    // The broker's file contains the absolute path.
    let owner = BrokerConfiguration.owner
    let broker = try BrokerConfiguration(folder: path, host: host, port: port, owner: owner, isPersistent: true)
    let staging = try StagingFolder(new)
    for (folder, mode) in [
      (VehiclePaths.operator, 0o700), (VehiclePaths.tls, 0o755), (VehiclePaths.vehicles, 0o755),
      (VehiclePaths.data, 0o700),
    ] as [(String, mode_t)] { try staging.createFolder(folder, mode: mode) }
    let tokenKey = SigningKey()
    let (certificates, end) = try about(path) { try Self.certificates(for: host, now: now) }
    let files =
      broker.files(AccessList([])) + certificates + [
        NewFile(VehiclePaths.tokenKey, tokenKey.jwk.text + "\n", isPrivate: true),
        NewFile(VehiclePaths.ledger, Ledger().text, isPrivate: true),
        NewFile(VehiclePaths.fleet, Self.text(host, port)),
      ]
    for file in files { try staging.write(file) }
    if owner != geteuid() {
      for name in [VehiclePaths.brokerKey, VehiclePaths.data] {
        let part = "\(staging.path)/\(name)"
        _ = try check("give away", part) { chown(part, owner, gid_t.max) }
      }
    }
    try staging.synchronize()
    _ = try check("set the mode of", staging.path) { chmod(staging.path, 0o755) }
    try staging.become(path)
    return (tokenKey.verificationKey.thumbprint, end)
  }

  private static func text(_ host: BrokerHost, _ port: UInt16) -> String {
    JSON.object([.init("host", .string(host.description)), .init("port", .integer(Int64(port)))]).text + "\n"
  }

  /// Records a new address of the fleet's broker: in the broker's files and certificate, and in the vehicles' files
  /// here, including those in riders' folders. Keys and tokens stay the same.
  ///
  /// - Parameter now: Unix time, from which the broker's new certificate is valid.
  /// - Returns: the vehicles' folders, each with the riders who must be told.
  package func moveBroker(
    to host: BrokerHost, _ port: UInt16, now: Int64
  ) throws -> [(vehicle: VehicleFolder, stale: VehicleFolder.StaleCopies)] {
    _ = try broker()
    let owner = try VehicleFolder(path).brokerOwner()
    let broker = try BrokerConfiguration(folder: path, host: host, port: port, owner: owner, isPersistent: true)
    try Files.replaceForOwner(path(VehiclePaths.fleet), with: Self.text(host, port).utf8, mode: 0o644)
    for file in broker.files(AccessList([])) where file.name != VehiclePaths.accessList {
      try Files.replaceForOwner(path(file.name), with: file.content, mode: file.mode)
    }
    try writeAccessList()
    _ = try renewCertificate(VehiclePaths.brokerCertificate, now: now)
    try writeRevocationList(now: now)
    return try vehicles().map { vehicle in
      var file = try vehicle.readVehicleFile().named(from: vehicle.path)
      file.broker?.host = host.description
      file.broker?.port = port
      try Files.replaceForOwner(vehicle.path(VehiclePaths.vehicle), with: file.render().utf8, mode: 0o644)
      return (vehicle, try vehicle.reissue(now: now))
    }
  }

  private static func certificates(for host: BrokerHost, now: Int64) throws(OpenSSLError) -> ([NewFile], end: Int64) {
    let authority = try CertificateAuthority(vehicleName: "several vehicles", now: now)
    let brokerKey = try PrivateKey()
    let ownKey = try PrivateKey()
    let broker = try authority.issue(.broker(host), to: brokerKey, now: now)
    let list = try authority.revocationList([], now: now).pem()
    return (
      [
        NewFile(VehiclePaths.revocationList, list),
        NewFile("\(VehiclePaths.tls)/\(authority.certificate.revocationListName)", list),
        NewFile(VehiclePaths.authorityCertificate, try authority.certificate.pem()),
        NewFile(VehiclePaths.authorityKey, try authority.key.pem(), isPrivate: true),
        NewFile(VehiclePaths.brokerCertificate, try broker.pem()),
        NewFile(VehiclePaths.brokerKey, try brokerKey.pem(), isPrivate: true),
        NewFile(VehiclePaths.operatorCertificate, try authority.issue(.operator, to: ownKey, now: now).pem()),
        NewFile(VehiclePaths.operatorKey, try ownKey.pem(), isPrivate: true),
      ], try broker.end()
    )
  }

  /// The address of the fleet's broker.
  package func broker() throws -> (host: BrokerHost, port: UInt16) {
    guard isFleet else { throw LedgerError.notFleet(path) }
    let file = path(VehiclePaths.fleet)
    guard let value = try? JSON(parsing: Files.readRegular(file)), value.object?.count == 2,
      let host = value["host"]?.string.flatMap({ BrokerHost($0) }),
      let port = value["port"]?.integer.flatMap({ UInt16(exactly: $0) }), port > 0
    else { throw LedgerError.damaged(file) }
    return (host, port)
  }

  /// The folder of a vehicle's public part.
  package func record(of name: String) -> VehicleFolder { VehicleFolder("\(path(VehiclePaths.vehicles))/\(name)") }

  /// Throws if a vehicle in another folder has the new vehicle's name, UUID or topic, or if the new vehicle's folder
  /// exists.
  ///
  /// - Parameter force: whether to replace a vehicle of the same name.
  func checkRoom(for plan: VehiclePlan, as name: RiderName?, force: Bool) throws {
    guard let name else { throw ProvisioningError.unusableName }
    let present = record(of: name.description).path
    guard force || !Files.exists(present) else { throw LedgerError.taken(present) }
    for known in try vehicles() where Files.name(of: known.path) != name.description {
      let file = try known.readVehicleFile()
      let (vehicle, new) = (file.vehicle, plan.vehicle)
      guard vehicle.name != new.name, vehicle.uuid != new.uuid, file.topic != plan.topic else {
        throw LedgerError.taken(known.path)
      }
    }
  }

  /// Records a new vehicle, and lets the broker's clients use its topics.
  func add(_ vehicle: VehicleFolder, as name: RiderName) throws {
    let record = record(of: name.description)
    let files = try [VehiclePaths.authorityCertificate, VehiclePaths.controllerCertificate, VehiclePaths.vehicle].map {
      NewFile($0, try Files.readRegular(vehicle.path($0)))
    }
    if Files.exists(record.path) {
      try Files.createFolder("\(record.path)/\(VehiclePaths.tls)", mode: 0o755)
      for file in files {
        try Files.replaceForOwner("\(record.path)/\(file.name)", with: file.content, mode: file.mode)
      }
    } else {
      try record.create(files)
    }
    try writeAccessList()
  }

  func writeAccessList() throws { try alone(in: VehiclePaths.vehicles) { try writeAccess() } }

  private func writeAccess() throws {
    let parts = try vehicles().map { folder in
      let file = try folder.readVehicleFile()
      return AccessList.Part(
        topic: try folder.present(file.topic, "topic"), steps: file.vehicle.steps, uuid: file.vehicle.uuid)
    }
    let access = AccessList(parts)
    try Files.replaceForOwner(path(VehiclePaths.accessList), with: access.text.utf8, mode: 0o644)
    let definitions = access.definitions(port: try broker().port)
    try Files.replaceForOwner(path(VehiclePaths.rabbitDefinitions), with: definitions.utf8, mode: 0o644)
  }
}

extension VehicleFolder {
  /// Creates the record of a new vehicle completely, or not at all. Every command reads all records, so an incomplete
  /// one would keep the operator from revoking anything.
  func create(_ files: [NewFile]) throws {
    // vehicles() skips names that begin with a dot.
    let new = "\(Files.parent(of: path))/.\(name).new"
    try StagingFolder.remove(new)
    let staging = try StagingFolder(new)
    try staging.createFolder(VehiclePaths.tls, mode: 0o755)
    for file in files { try staging.write(file) }
    try staging.synchronize(VehiclePaths.tls)
    try staging.synchronize()
    try staging.become(path)
  }
}
