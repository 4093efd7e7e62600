package import Configuration
import Glibc
import Domain
import SystemIO

extension VehicleFolder {
  /// Lets the controller verify a dynamic tag from its next start on; one of the same UID is replaced. Others may be
  /// adding theirs at the same time.
  package func add(_ tag: TagKeyFile.Tag) throws(ProvisioningError) {
    try checkFinished()
    let vehicle = try readVehicleFile().vehicle
    guard vehicle.step(tag.step) != nil else { throw .noSuchStep(tag.step, known: vehicle.steps.map(\.id)) }
    let path = path(VehicleLayout.tagKeys)
    // The folder is locked, because the file is replaced.
    let folder = Files.parent(of: path)
    let lock = try rethrowing { () throws(SystemError) in
      let lock = try Descriptor.open(folder, O_RDONLY | O_DIRECTORY)
      let number = lock.number
      _ = try check("lock", folder) { flock(number, LOCK_EX) }
      return lock
    }
    defer { withExtendedLifetime(lock) {} }
    var file = try tagKeys()
    file.set(tag)
    guard file.tags.count <= TagKeyFile.maximumCount else { throw .tooManyTags(path) }
    try rethrowing { () throws(SystemError) in try Files.replace(path, with: file.render().utf8, mode: 0o600) }
  }

  /// The dynamic tags' keys, none before the first. A file that cannot be read is not taken for that: it would be
  /// replaced, and the keys in it lost.
  func tagKeys() throws(ProvisioningError) -> TagKeyFile {
    let path = path(VehicleLayout.tagKeys)
    do throws(ConfigurationError) { return try TagKeyFile(reading: path) } catch {
      guard error.kind == .missing else { throw .configuration(error) }
      return TagKeyFile(path: path)
    }
  }
}
