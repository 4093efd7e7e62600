package import StepDomain

/// All that a controller works from: `stepd.toml` and the vehicle file that it names, found to agree.
package struct ControllerSetup: Equatable, Sendable {
  package let vehicle: Vehicle
  package let topic: TopicPrefix
  package let broker: Broker
  package let certificate: ClientCertificate
  package let journal: String
  package let keys: KeyFiles
  package let policy: AccessPolicy
  package let servo: ServoSettings

  /// Reads both files.
  ///
  /// - Throws: when one of them is wrong, they do not fit, or a private key is not there or can be read by others.
  package init(reading path: String) throws(ConfigurationError) {
    let file = try ControllerFile(reading: path)
    let vehicleFile = try VehicleFile(reading: file.vehicle)
    let purpose = "the controller needs it"
    vehicle = vehicleFile.vehicle
    topic = try vehicleFile.present(vehicleFile.topic, "topic", purpose)
    broker = Broker(
      host: try vehicleFile.present(file.broker.host ?? vehicleFile.broker?.host, "[broker]", purpose),
      port: file.broker.port ?? vehicleFile.broker?.port ?? Broker.standardPort,
      ca: try vehicleFile.present(file.broker.ca ?? vehicleFile.broker?.ca, "[broker]", purpose))
    certificate = file.broker.certificate
    journal = file.journal
    keys = file.keys
    policy = file.policy
    servo = file.servo
    if case .pwm(let pwm) = servo.driver {
      for step in vehicle.steps where pwm.outputs[step.id] == nil {
        throw ConfigurationError(path, "[servo.steps.\(step.id)] is missing: the vehicle has that step")
      }
      let strangers = pwm.outputs.keys.filter { vehicleFile.vehicle.step($0) == nil }
      if let id = strangers.map(\.description).min() {
        throw ConfigurationError(path, "[servo.steps.\(id)]: \(vehicleFile.path) has no such step")
      }
    }
    try PrivateFile.check(certificate.key)
    try PrivateFile.check(keys.encryption)
    try PrivateFile.check(keys.signing)
  }
}
