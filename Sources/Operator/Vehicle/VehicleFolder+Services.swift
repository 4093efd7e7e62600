import Domain
import Encoding
import Glibc
import StepdConfiguration
import SystemIO

extension VehicleFolder {
  /// Whether the vehicle has its own broker, and not its fleet's.
  package var hasBroker: Bool { Files.exists(path(VehiclePaths.broker)) }

  /// Copies the controller's files to a folder that is missing or empty. The operator's and riders' files are not
  /// copied. The journal is, because without it the controller would forget the operator's notice and the used tag
  /// readings.
  package func copyController(to destination: String) throws {
    let keys = try Files.names(in: path(VehiclePaths.keys)).map { "\(VehiclePaths.keys)/\($0)" }
    let journal = ControllerFile.standardJournal
    try copy(
      [
        VehiclePaths.vehicle, VehiclePaths.controller, VehiclePaths.authorityCertificate,
        VehiclePaths.controllerCertificate, VehiclePaths.controllerKey,
      ] + keys + (Files.exists(path(journal)) ? [journal] : []), to: destination)
  }

  /// Copies the files that the broker needs.
  package func copyBroker(to destination: String) throws {
    guard let resolved = realpath(path, nil) else { throw SystemError("find", path) }
    defer { free(resolved) }
    let own = String(cString: resolved)
    try copy(
      [
        VehiclePaths.accessList, VehiclePaths.authorityCertificate, VehiclePaths.brokerCertificate,
        VehiclePaths.brokerKey, VehiclePaths.broker, VehiclePaths.revocationList,
      ], to: destination, folders: [VehiclePaths.data]
    ) { name, content in
      guard name == VehiclePaths.broker else { return content }
      return Array(String(decoding: content, as: UTF8.self).substituting("\(own)/", by: "\(destination)/").utf8)
    }
  }

  private func copy(
    _ names: [String], to destination: String, folders: [String] = [],
    _ change: (String, [UInt8]) -> [UInt8] = { $1 }
  ) throws {
    // systemd may have made the destination a link: its target folder may be replaced, but the link stays.
    let place = realpath(destination, nil).map { resolved in
      defer { free(resolved) }
      return String(cString: resolved)
    }
    let new = "\(Files.parent(of: place ?? destination))/.\(Files.name(of: destination)).new"
    // Left by an interrupted run, and useless.
    try StagingFolder.remove(new)
    let staging = try StagingFolder(new)
    for folder in Set(names.filter { $0.contains("/") }.map { Files.parent(of: $0) }).sorted() {
      try staging.createFolder(folder, mode: folder == VehiclePaths.keys ? 0o700 : 0o755)
    }
    for folder in folders { try staging.createFolder(folder, mode: 0o700) }
    for name in names {
      let source = path(name)
      let isPrivate = try !Files.isReadableByOthers(source)
      try staging.write(NewFile(name, change(name, try Files.readRegular(source)), isPrivate: isPrivate))
    }
    try staging.synchronize()
    try staging.become(place ?? destination)
  }

  /// Removes such a copy.
  package static func removeCopy(_ path: String) throws { try StagingFolder.remove(path) }
}
