package import Configuration
import Glibc
package import StepDomain
import StepProtocol
import StrictJSON
import SystemIO

/// What steps are recognised by, where that cannot be copied.
extension VehicleFolder {
  /// Makes the secret that a step's iBeacon rotates its minors by.
  ///
  /// - Returns: the file's path from the vehicle's folder, for `[beacon.steps.ID]` of stepd.toml.
  /// - Throws: `inTheWay` when the step has one: a beacon of its own may be using it.
  package func createBeaconSecret(for step: StepID) throws(ProvisioningError) -> String {
    try checkFinished()
    let file = NewFile.beaconSecret(for: step)
    guard !Files.exists(path(file.name)) else { throw .inTheWay(path(file.name)) }
    try rethrowing { () throws(SystemError) in
      try Files.replace(path(file.name), with: file.content, mode: file.mode)
    }
    return file.name
  }

  /// Lets the controller verify a dynamic tag from its next start on; one of the same UID is replaced.
  package func add(_ tag: TagKeyFile.Tag) throws(ProvisioningError) {
    try checkFinished()
    guard try readVehicleFile().vehicle.step(tag.step) != nil else { throw .noSuchStep(tag.step) }
    let path = path(VehicleLayout.tagKeys)
    var file = try rethrowing { () throws(ConfigurationError) in
      Files.exists(path) ? try TagKeyFile(reading: path) : TagKeyFile(path: path)
    }
    file.set(tag)
    guard file.tags.count <= TagKeyFile.maximumCount else { throw .tooManyTags(path) }
    try rethrowing { () throws(SystemError) in try Files.replace(path, with: file.render().utf8, mode: 0o600) }
  }
}

extension NewFile {
  /// A new secret.
  static func beaconSecret(for step: StepID) -> NewFile {
    NewFile(VehicleLayout.beaconSecret(of: step), BeaconSecret().jwk.text + "\n", isPrivate: true)
  }
}
