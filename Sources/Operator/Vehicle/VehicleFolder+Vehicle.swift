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
    VehiclePaths.tls, VehiclePaths.keys, VehiclePaths.operator, VehiclePaths.data, VehiclePaths.vehicle,
    VehiclePaths.controller, VehiclePaths.brokerAddress, VehiclePaths.accessList, VehiclePaths.brokerLimits,
    VehiclePaths.firewall, VehiclePaths.broker,
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
  ///   - owner: who admits the vehicle.
  package func provisionVehicle(
    _ plan: VehiclePlan, of owner: VehicleOwner, now: Int64, force: Bool
  ) throws -> VehicleSummary {
    guard Vehicle.isName(plan.vehicle.name) else { throw ProvisioningError.unusableName }
    try checkNoOperator()
    try checkNoRecord()
    let new = missingFolders
    do {
      try Files.createFolder(path, mode: 0o755)
      return try provisionInPlace(plan, of: owner, now: now, force: force)
    } catch {
      for folder in new { rmdir(folder) }
      throw error
    }
  }

  /// Throws if an operator keeps its vehicles' public files beside this folder: the vehicle's own have other content.
  private func checkNoRecord() throws(ProvisioningError) {
    let parent = Files.parent(of: path)
    let folder = realpath(parent, nil).map { resolved in
      defer { free(resolved) }
      return String(cString: resolved)
    }
    let place = OperatorPlace(Files.parent(of: folder ?? parent))
    guard Files.name(of: folder ?? parent) == VehiclePaths.vehicles, Files.exists(place.path(VehiclePaths.tokenKey))
    else { return }
    throw .amongRecords(path, of: place.path)
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
    _ plan: VehiclePlan, of owner: VehicleOwner, now: Int64, force: Bool
  ) throws -> VehicleSummary {
    if let place = owner.place { try place.checkRoom(for: plan, as: name, force: force) }
    let present = parts
    let wasInterrupted = Files.exists(path(VehiclePaths.staging))
    if !force {
      try checkFinished()
      if present.contains(VehiclePaths.vehicle) { throw ProvisioningError.vehicleExists(path) }
      if let first = present.first { throw ProvisioningError.inTheWay(path(first)) }
    }
    let new = try NewVehicle(plan, in: self, of: owner, now: now)

    if wasInterrupted {
      // The parts that the interrupted run had moved away may be the only copy.
      let taken = path("\(VehiclePaths.staging)/replaced")
      if try Files.exists(taken) && !Files.names(in: taken).isEmpty {
        try StagingFolder.synchronize(taken)
        try StagingFolder.move(taken, to: backup(now))
      }
      try StagingFolder.remove(path(VehiclePaths.staging))
    }
    var staging = try StagingFolder(path(VehiclePaths.staging))
    // After an interruption the folder contains parts of two vehicles, and only success removes the mark.
    staging.isToStay = wasInterrupted
    try Self.write(new, to: staging)
    try exchange(present, for: &staging, stays: wasInterrupted, now: now)
    if let place = owner.place {
      let names = [VehiclePaths.authorityCertificate, VehiclePaths.controllerCertificate, VehiclePaths.vehicle]
      try place.add(new.files.filter { names.contains($0.name) }, as: self.name)
    }
    if new.hasOperator { try BrokerConfiguration.letIn(to: path) }
    return new.summary
  }

  /// Writes and syncs all files of a vehicle.
  private static func write(_ new: NewVehicle, to staging: borrowing StagingFolder) throws {
    var folders = NewOperator.folders.filter { folder in folder.name == VehiclePaths.tls || new.hasOperator }
    folders += [(VehiclePaths.keys, 0o700), ("replaced", 0o700)]
    for folder in folders { try staging.createFolder(folder.name, mode: folder.mode) }
    for file in new.files { try staging.write(file) }
    if new.hasOperator { try BrokerConfiguration.giveAway(in: staging.path) }
    try staging.synchronize()
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
      // After a power cut, the mark must be there, and the former parts must be somewhere.
      try StagingFolder.synchronize(path)
      for name in present {
        try staging.take(path(name), as: "replaced/\(name)")
        taken.append(name)
      }
      if !taken.isEmpty { try StagingFolder.synchronize("\(folder)/replaced") }
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

  /// Rewrites the broker's files that have absolute paths, after the folder was moved or the broker's key got another
  /// owner.
  package func relocate() throws {
    try checkFinished()
    try place.relocateBroker()
  }

  /// Replaces the certificates of broker and controller, for the same keys. Both programs use the new ones from their
  /// next start on.
  ///
  /// - Parameter now: Unix time, from which they are valid.
  /// - Returns: when they end, Unix time.
  package func renewCertificates(now: Int64) throws -> Int64 {
    try checkFinished()
    let place = place
    let names = [VehiclePaths.brokerCertificate, place.controllerCertificate(of: self)]
    return try names.map { try place.renewCertificate($0, now: now) }.min() ?? now
  }

  /// The broker's address, as the vehicle's file has it.
  func readBroker() throws -> BrokerAddress {
    let file = try readVehicleFile()
    let broker = try file.present(file.broker, "[broker]")
    guard let host = BrokerHost(broker.host) else {
      throw ConfigurationError(path(VehiclePaths.vehicle), "[broker] host: expected a host name or an IP address")
    }
    return BrokerAddress(host: host, port: broker.port)
  }
}
