package import Configuration
import StepDomain
import SystemIO

extension VehicleFolder {
  /// Lets the controller verify a dynamic tag from its next start on; one of the same UID is replaced.
  package func add(_ tag: TagKeyFile.Tag) throws(ProvisioningError) {
    try checkFinished()
    let vehicle = try readVehicleFile().vehicle
    guard vehicle.step(tag.step) != nil else { throw .noSuchStep(tag.step, known: vehicle.steps.map(\.id)) }
    let path = path(VehicleLayout.tagKeys)
    var file = try rethrowing { () throws(ConfigurationError) in
      Files.exists(path) ? try TagKeyFile(reading: path) : TagKeyFile(path: path)
    }
    file.set(tag)
    guard file.tags.count <= TagKeyFile.maximumCount else { throw .tooManyTags(path) }
    try rethrowing { () throws(SystemError) in try Files.replace(path, with: file.render().utf8, mode: 0o600) }
  }
}
