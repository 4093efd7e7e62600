import Domain
import Encoding
package import FileFormats
import Glibc
import MQTT
package import StepProtocol
import SystemIO

/// The operator's broker, and the vehicles that use it.
extension OperatorPlace {
  /// Creates the folder of an operator who has no vehicle yet, completely or not at all.
  ///
  /// - Parameters:
  ///   - plugin: as in `BrokerRecord`.
  ///   - now: Unix time, from which the certificates are valid.
  /// - Returns: the key that signs tokens, and the end of the broker's certificate.
  package func initialize(
    at broker: BrokerAddress, plugin: String? = nil, now: Int64
  ) throws -> (Thumbprint, certificateEnd: Int64) {
    if Files.exists(path) {
      guard Files.isFolder(path), try Files.names(in: path).isEmpty else { throw LedgerError.inTheWay(path) }
    }
    // Before anything is made.
    _ = try IssueTime(now)
    let staging = "\(Files.parent(of: path))/.\(Files.name(of: path)).new"
    guard !Files.exists(staging) else { throw LedgerError.interrupted(staging) }
    try Files.createFolder(path, mode: 0o755)
    let record = BrokerRecord(address: broker, plugin: plugin)
    let new = try NewOperator(named: "several vehicles", in: path, at: record, AccessList([]), now: now)
    let folder = try StagingFolder(staging)
    for part in NewOperator.folders { try folder.createFolder(part.name, mode: part.mode) }
    try folder.createFolder(VehiclePaths.vehicles, mode: 0o755)
    for file in new.files { try folder.write(file) }
    if plugin != nil { try folder.write(NewFile(VehiclePaths.formerVehicles, "")) }
    try BrokerConfiguration.giveAway(in: folder.path)
    _ = try check("set the mode of", folder.path) { chmod(folder.path, 0o755) }
    try folder.synchronize()
    try folder.become(path)
    return (new.admitter.keys[0].thumbprint, new.brokerEnd)
  }

  package func broker() throws -> BrokerAddress { try brokerRecord().address }

  func brokerRecord() throws -> BrokerRecord {
    let file = path(VehiclePaths.brokerAddress)
    guard Files.exists(file) else {
      try checkPresent()
      throw LedgerError.missing(file)
    }
    guard let record = BrokerRecord(parsing: try Files.readRegular(file)) else { throw LedgerError.damaged(file) }
    return record
  }

  /// Lets mosquitto ask a plugin what its clients may do, or takes the plugin away, and writes the broker's files.
  ///
  /// - Parameter plugin: as in `BrokerRecord`.
  func setBrokerPlugin(_ plugin: String?) throws {
    let record = BrokerRecord(address: try broker(), plugin: plugin)
    // The list has all vehicles until a server writes it: mosquitto may have been started before, and have no plugin.
    let broker = try prepareBroker(record)
    if plugin != nil, !Files.exists(path(VehiclePaths.formerVehicles)) { try writeFormerVehicles([]) }
    try alone {
      try replaceFiles(of: broker, accessList(plugin: nil))
      try Files.replaceForOwner(path(VehiclePaths.brokerAddress), with: record.text.utf8, mode: 0o644)
    }
  }

  /// Writes the list of removed vehicles, which mosquitto's plugin reads: their UUIDs, in their order.
  func writeFormerVehicles(_ vehicles: Set<UUID>) throws {
    let text = vehicles.map { "\($0)\n" }.sorted().joined()
    try Files.replaceForOwner(path(VehiclePaths.formerVehicles), with: text.utf8, mode: 0o644)
  }

  /// Records a new address of the broker: in the broker's files and certificate, and in the vehicles' files here,
  /// including those in riders' folders. Keys and tokens stay the same.
  ///
  /// - Parameter now: Unix time, from which the broker's new certificate is valid.
  /// - Returns: the vehicles' folders, each with the riders who must be told.
  package func moveBroker(to broker: BrokerAddress, now: Int64) throws -> [UpdatedVehicle] {
    try checkClock(now)
    let record = BrokerRecord(address: broker, plugin: try brokerRecord().plugin)
    try writeBroker(record)
    _ = try renewCertificate(VehiclePaths.brokerCertificate, at: broker, now: now)
    try writeRevocationList(now: now)
    let updated: [UpdatedVehicle] = try vehicles().map { vehicle in
      var file = try vehicle.readVehicleFile().named(from: vehicle.path)
      if let old = file.broker, old.host != broker.host.description || old.port != broker.port {
        file.broker?.host = broker.host.description
        file.broker?.port = broker.port
        try Files.replaceForOwner(vehicle.path(VehiclePaths.vehicle), with: file.render().utf8, mode: 0o644)
      }
      return (vehicle, try vehicle.reissue(now: now))
    }
    // Comes last: if the power goes away before, a vehicle's file and this one still differ, and `update` does all of
    // this again.
    try Files.replaceForOwner(path(VehiclePaths.brokerAddress), with: record.text.utf8, mode: 0o644)
    // A server may have written the lists meanwhile, for the old address.
    try writeAccessList()
    return updated
  }

  /// A vehicle whose file has changed, and the riders who must be told.
  package typealias UpdatedVehicle = (vehicle: VehicleFolder, stale: VehicleFolder.StaleCopies)

  /// Why the broker cannot start from here, as far as the modes of its files tell.
  package var brokerObstacle: BrokerFile.Obstacle? {
    (try? BrokerFile(reading: path(VehiclePaths.broker)))?.obstacle
  }

  /// Writes the broker's files again.
  ///
  /// - Parameter record: nil for what the folder says.
  func writeBroker(_ record: BrokerRecord? = nil) throws {
    let record = try record ?? brokerRecord()
    let broker = try prepareBroker(record)
    try alone { try replaceFiles(of: broker, accessList(plugin: record.plugin)) }
  }

  private func replaceFiles(of broker: BrokerConfiguration, _ access: AccessList) throws {
    for file in broker.files(access) {
      try Files.replaceForOwner(path(file.name), with: file.content, mode: file.mode)
    }
  }

  /// Writes those of the broker's files again that have absolute paths.
  func relocateBroker() throws {
    let file = try prepareBroker(brokerRecord()).located
    try Files.replaceForOwner(path(file.name), with: file.content, mode: file.mode)
    try BrokerConfiguration.letIn(to: path)
  }

  /// Makes the folders that the broker's files need, and gives the one of its messages to the owner of its key.
  ///
  /// - Returns: what the files say.
  private func prepareBroker(_ record: BrokerRecord) throws -> BrokerConfiguration {
    let (key, data) = (path(VehiclePaths.brokerKey), path(VehiclePaths.data))
    var status = stat()
    _ = try check("stat", key) { stat(key, &status) }
    try Files.createFolderForOwner(data, mode: 0o700)
    if geteuid() == 0 {
      // The folder's owner may have put a link in its place.
      let folder = try Descriptor.open(data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      let number = folder.number
      _ = try check("give away", data) { fchown(number, status.st_uid, gid_t.max) }
    }
    return try BrokerConfiguration(folder: path, record, owner: status.st_uid)
  }

  /// Throws if a vehicle in another folder has the new vehicle's name, UUID or topic, or if the new vehicle's folder
  /// exists.
  ///
  /// - Parameter force: whether to replace a vehicle of the same name.
  func checkRoom(for plan: VehiclePlan, as folder: String, force: Bool) throws {
    try checkPresent()
    guard let name = RiderName(folder) else { throw ProvisioningError.unusableFolderName(folder) }
    let present = record(of: name.description)
    guard force || !Files.exists(present.path) else { throw LedgerError.taken(present.path) }
    for known in try vehicles() where known.path != present.path {
      let file = try known.readVehicleFile()
      guard file.vehicle.name != plan.vehicle.name, file.vehicle.uuid != plan.vehicle.uuid, file.topic != plan.topic
      else { throw LedgerError.taken(known.path) }
    }
  }

  /// Records a new vehicle, and lets the broker's clients use its topics.
  ///
  /// - Parameter files: the vehicle's public files.
  func add(_ files: [NewFile], as name: String) throws {
    let record = record(of: name)
    if Files.exists(record.path) {
      try Files.createFolder("\(record.path)/\(VehiclePaths.tls)", mode: 0o755)
      for file in files {
        try Files.replaceForOwner("\(record.path)/\(file.name)", with: file.content, mode: file.mode)
      }
      try record.linkOperator()
    } else {
      try Files.createFolderForOwner(path(VehiclePaths.vehicles), mode: 0o755)
      try record.create(files)
    }
    try writeAccessList()
  }

  /// - Parameters:
  ///   - known: vehicles whose files need not be read, by the names of their folders.
  ///   - others: the names of the folders of those that the plugin knows, if there is one.
  func writeAccessList(knowing known: [String: VehicleTopics] = [:], without others: Set<String> = []) throws {
    try alone {
      let file = try accessList(known, without: others, plugin: brokerRecord().plugin).file
      try Files.replaceForOwner(path(file.name), with: file.content, mode: file.mode)
    }
  }

  private func accessList(
    _ known: [String: VehicleTopics] = [:], without others: Set<String> = [], plugin: String?
  ) throws -> AccessList {
    // The server that names the others may have been started before the plugin was taken away.
    let others = plugin == nil ? [] : others
    let topics = try vehicles().filter { !others.contains($0.name) }.map { folder in
      if let known = known[folder.name] { return known }
      let file = try folder.readVehicleFile()
      return VehicleTopics(
        of: file.vehicle.uuid, topic: try file.present(file.topic, "topic"), steps: file.vehicle.steps)
    }
    return AccessList(plugin == nil ? topics : topics.filter { !$0.areUsual })
  }
}

/// Where riders and vehicles reach a broker.
package struct BrokerAddress: Sendable, Equatable, CustomStringConvertible {
  package let host: BrokerHost
  package let port: UInt16

  package init(host: BrokerHost, port: UInt16) { (self.host, self.port) = (host, port) }

  package var description: String { HostPort(host: host.description, port: port).description }

  /// The broker as vehicle.toml names it.
  ///
  /// - Parameter authority: the path of its authority's certificate.
  func broker(authority: String = VehiclePaths.authorityCertificate) -> Broker {
    Broker(host: host.description, port: port, tls: .init(authority: authority, identity: nil))
  }
}

/// What an operator's folder says about the broker: broker.json.
struct BrokerRecord: Equatable {
  let address: BrokerAddress
  /// The path of mosquitto's plugin that knows what clients may do with the topics that vehicles usually have, on the
  /// broker's computer. Nil if mosquitto's list has all vehicles.
  let plugin: String?

  init(address: BrokerAddress, plugin: String?) { (self.address, self.plugin) = (address, plugin) }

  init?(parsing bytes: [UInt8]) {
    guard let value = try? JSON(parsing: bytes), let members = value.object,
      let host = value["host"]?.string.flatMap({ BrokerHost($0) }),
      let port = value["port"]?.integer.flatMap({ UInt16(exactly: $0) }), port > 0
    else { return nil }
    plugin = value["plugin"]?.string
    guard members.count == (plugin == nil ? 2 : 3) else { return nil }
    address = BrokerAddress(host: host, port: port)
  }

  var text: String {
    var members: [JSON.Member] = [
      .init("host", .string(address.host.description)), .init("port", .integer(Int64(address.port))),
    ]
    if let plugin { members.append(.init("plugin", .string(plugin))) }
    return JSON.object(members).text + "\n"
  }
}

extension VehicleFolder {
  /// Creates the record of a new vehicle completely, or not at all. Every command reads all records, so an incomplete
  /// one would keep the operator from revoking anything.
  func create(_ files: [NewFile]) throws {
    // vehicles() skips names that begin with a dot.
    let new = VehicleFolder("\(Files.parent(of: path))/.\(name).new")
    try StagingFolder.remove(new.path)
    let staging = try StagingFolder(new.path)
    try staging.createFolder(VehiclePaths.tls, mode: 0o755)
    for file in files { try staging.write(file) }
    try new.linkOperator()
    try staging.synchronize()
    try staging.become(path)
  }

  /// Lets a record name its operator: `place` follows this link.
  func linkOperator() throws {
    let link = path(VehiclePaths.operator)
    if Files.target(ofLink: link) != nil || Files.exists(link) { return }
    _ = try check("create", link) { symlink("../../\(VehiclePaths.operator)", link) }
    try Files.synchronizeFolder(of: link)
  }
}
