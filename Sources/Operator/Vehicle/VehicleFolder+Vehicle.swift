import Certificates
import Domain
import FileFormats
import Glibc
import MQTT
import StepProtocol
import SystemIO

extension VehicleFolder {
  /// The parts of a vehicle, in the order in which they move to their places. mosquitto.conf is the last, because it
  /// marks a complete vehicle.
  private static let allParts = [
    VehiclePaths.tls, VehiclePaths.keys, VehiclePaths.operator, VehiclePaths.vehicle, VehiclePaths.controller,
    VehiclePaths.accessList, VehiclePaths.brokerLimits, VehiclePaths.firewall, VehiclePaths.broker,
  ]

  /// The existing parts of a vehicle, including its riders: what a new vehicle would replace.
  var parts: [String] { (Self.allParts + [VehiclePaths.riders]).filter { Files.exists(path($0)) } }

  /// Makes all files of a vehicle, its broker and its controller, with new keys.
  ///
  /// Files with other names in the folder are left alone. If this throws, nothing was changed. A process that ends in
  /// the middle leaves a mark, for which later calls throw `unfinished`.
  ///
  /// - Parameters:
  ///   - now: Unix time, from which the certificates are valid.
  ///   - force: replaces an existing vehicle with all its riders. Their tokens become worthless.
  ///   - issuer: the operator of the new vehicle.
  package func provisionVehicle(
    _ plan: VehiclePlan, by issuer: VehicleIssuer = .own, now: Int64, force: Bool
  ) throws -> VehicleSummary {
    guard Vehicle.isName(plan.vehicle.name) else { throw ProvisioningError.unusableName }
    try checkNoOperator()
    let new = missingFolders
    do {
      try Files.createFolder(path, mode: 0o755)
      return try provisionInPlace(plan, by: issuer, now: now, force: force)
    } catch {
      for folder in new { rmdir(folder) }
      throw error
    }
  }

  /// This folder and its parents that do not exist, starting with this folder.
  private var missingFolders: [String] {
    var missing: [String] = []
    var folder = path
    while !Files.exists(folder) {
      missing.append(folder)
      folder = Files.parent(of: folder)
    }
    return missing
  }

  private func provisionInPlace(
    _ plan: VehiclePlan, by issuer: VehicleIssuer, now: Int64, force: Bool
  ) throws -> VehicleSummary {
    let fleet = issuer.operatorPlace
    let name = RiderName(Files.name(of: path))
    if let fleet { try fleet.checkRoom(for: plan, as: name, force: force) }
    let present = parts
    let wasInterrupted = Files.exists(path(VehiclePaths.staging))
    if !force {
      try checkFinished()
      if present.contains(VehiclePaths.vehicle) { throw ProvisioningError.vehicleExists(path) }
      if let first = present.first { throw ProvisioningError.inTheWay(path(first)) }
    }
    let new = try NewVehicle(plan, in: self, by: issuer, now: now)

    if wasInterrupted {
      // The parts that the interrupted run had moved away may be the only copy.
      let taken = path("\(VehiclePaths.staging)/replaced")
      if try Files.exists(taken) && !Files.names(in: taken).isEmpty {
        _ = try check("keep", taken) { rename(taken, backup(now)) }
      }
      try StagingFolder.remove(path(VehiclePaths.staging))
    }
    var staging = try StagingFolder(path(VehiclePaths.staging))
    // After an interruption the folder contains parts of two vehicles, and only success removes the mark.
    staging.isToStay = wasInterrupted
    try Self.write(new, to: staging)
    try exchange(present, for: &staging, stays: wasInterrupted, now: now)
    if let fleet, let name { try fleet.add(self, as: name) }
    return new.summary
  }

  /// Writes and syncs all files of a vehicle.
  private static func write(_ new: NewVehicle, to staging: borrowing StagingFolder) throws {
    // mosquitto may run as another user, who must reach its key. The modes of the files protect them.
    try staging.createFolder(VehiclePaths.tls, mode: 0o755)
    try staging.createFolder(VehiclePaths.keys, mode: 0o700)
    if new.isItsOwnOperator { try staging.createFolder(VehiclePaths.operator, mode: 0o700) }
    try staging.createFolder("replaced", mode: 0o700)
    for file in new.files { try staging.write(file) }
    if new.brokerOwner != geteuid() {
      let key = "\(staging.path)/\(VehiclePaths.brokerKey)"
      _ = try check("give away", key) { chown(key, new.brokerOwner, gid_t.max) }
    }
    for folder in [VehiclePaths.tls, VehiclePaths.keys, VehiclePaths.operator, "."]
    where Files.exists("\(staging.path)/\(folder)") { try staging.synchronize(folder) }
  }

  /// Moves the present parts out of their places, and the new parts into them.
  ///
  /// - Parameters:
  ///   - present: the names of the parts to move out; they are kept in a separate folder.
  ///   - stays: whether the mark of an interruption stays if this fails.
  /// - Throws: `SystemError`; then each part is where it was.
  private func exchange(
    _ present: [String], for staging: inout StagingFolder, stays: Bool, now: Int64
  ) throws(SystemError) {
    let folder = staging.path
    let newParts = Self.allParts.filter { Files.exists("\(folder)/\($0)") }
    // From here to the end the folder contains parts of two vehicles.
    staging.isToStay = true
    var (taken, moved): ([String], [String]) = ([], [])
    do throws(SystemError) {
      for name in present {
        try staging.take(path(name), as: "replaced/\(name)")
        taken.append(name)
      }
      for name in newParts {
        try staging.move(name, to: path(name))
        moved.append(name)
      }
      if !taken.isEmpty { try staging.move("replaced", to: backup(now)) }
    } catch {
      // Restore the former parts. If that fails too, the mark stays.
      for name in moved { try staging.take(path(name), as: name) }
      for name in taken { try staging.move("replaced/\(name)", to: path(name)) }
      staging.isToStay = stays
      throw error
    }
    try StagingFolder.synchronize(path)
    staging.isToStay = false
  }

  /// Where the parts of a replaced vehicle go: its keys may be needed again.
  private func backup(_ now: Int64) -> String {
    var name = "replaced-\(now)"
    var number = 2
    while Files.exists(path(name)) {
      name = "replaced-\(now)-\(number)"
      number += 1
    }
    return path(name)
  }

  /// Rewrites mosquitto.conf after the folder was moved or the broker's key got another owner.
  package func relocate(now: Int64) throws {
    try checkFinished()
    // A folder from before revocation lists has none, and the vehicle lacks the key to make one.
    if !Files.exists(path(VehiclePaths.revocationList)), Files.exists(place.path(VehiclePaths.authorityKey)) {
      try place.writeRevocationList(now: now)
    }
    try Files.replaceForOwner(path(VehiclePaths.broker), with: brokerConfiguration().text.utf8, mode: 0o644)
  }

  func brokerConfiguration() throws -> BrokerConfiguration {
    let (host, port) = try readBroker()
    var configuration = try BrokerConfiguration(
      folder: path, host: host, port: port, owner: brokerOwner())
    configuration.hasRevocationList = Files.exists(path(VehiclePaths.revocationList))
    return configuration
  }

  /// The owner of the broker's private key.
  func brokerOwner() throws -> uid_t {
    let key = path(VehiclePaths.brokerKey)
    var status = stat()
    _ = try check("stat", key) { stat(key, &status) }
    return status.st_uid
  }

  /// Replaces the certificates of broker and controller, for the same keys. Both programs use the new ones from their
  /// next start on.
  ///
  /// - Parameter now: Unix time, from which they are valid.
  /// - Returns: when they end, Unix time.
  package func renewCertificates(now: Int64) throws -> Int64 {
    try checkFinished()
    let authority = try readAuthority()
    var end = Int64.max
    for (role, name, keyName) in [
      (.broker(try readBroker().host), VehiclePaths.brokerCertificate, VehiclePaths.brokerKey),
      (CertificateRole.controller(of: nil), VehiclePaths.controllerCertificate, VehiclePaths.controllerKey),
    ] {
      let key = try readPrivateKey(keyName)
      let pem = try about(path(name)) {
        let certificate = try authority.issue(role, to: key, now: now)
        end = min(end, try certificate.end())
        return try certificate.pem()
      }
      try Files.replaceForOwner(path(name), with: pem, mode: 0o644)
    }
    return end
  }

  func readBroker() throws -> (host: BrokerHost, port: UInt16) {
    let broker = try present(try readVehicleFile().broker, "[broker]")
    guard let host = BrokerHost(broker.host) else {
      throw ConfigurationError(path(VehiclePaths.vehicle), "[broker] host: expected a host name or an IP address")
    }
    return (host, broker.port)
  }
}
