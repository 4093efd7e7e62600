package import Domain

/// All that a rider's program needs to command a vehicle: a vehicle file without gaps.
package struct RiderAccess: Equatable, Sendable {
  package let vehicle: Vehicle
  package let topic: TopicPrefix
  package let broker: Broker
  package let certificate: ClientCertificate
  package let controller: ControllerKeys
  package let rider: Rider
}

extension VehicleFile {
  /// What is needed to command the vehicle.
  ///
  /// - Throws: when a part is missing, or one of the two private keys is not there or can be read by others.
  package func riderAccess() throws(ConfigurationError) -> RiderAccess {
    let purpose = "commands need it; a rider's vehicle file has it"
    let access = RiderAccess(
      vehicle: vehicle,
      topic: try present(topic, "topic", purpose),
      broker: try present(broker, "[broker]", purpose),
      certificate: try present(certificate, "[broker] cert", purpose),
      controller: try present(controller, "[controller]", purpose),
      rider: try present(rider, "[rider]", purpose))
    try PrivateFile.check(access.certificate.key)
    try PrivateFile.check(access.rider.deviceKey)
    return access
  }

  /// A part that not every vehicle file has.
  func present<Part>(_ part: Part?, _ name: String, _ purpose: String) throws(ConfigurationError) -> Part {
    guard let part else { throw ConfigurationError(path, "\(name) is missing: \(purpose)") }
    return part
  }
}
