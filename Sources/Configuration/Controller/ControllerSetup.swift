package import Domain

/// All that a controller works from: `stepd.toml` and the vehicle file that it names, found to agree.
package struct ControllerSetup: Equatable, Sendable {
  package let vehicle: Vehicle
  package let topic: TopicPrefix
  package let broker: Broker
  package let certificate: ClientCertificate
  package let journal: String
  package let keys: KeyFiles
  package let policy: AccessPolicy
  package let beacon: BeaconSettings
  /// The tags whose messages can be verified.
  package let tags: [TagKeyFile.Tag]
  package let servo: ServoSettings

  /// Reads both files, and the keys of tags.
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
    beacon = file.beacon
    servo = file.servo
    if case .pwm(let pwm) = servo.driver {
      for step in vehicle.steps where pwm.outputs[step.id] == nil {
        throw ConfigurationError(path, "[servo.steps.\(step.id)] is missing: the vehicle has that step")
      }
      try vehicleFile.knows(pwm.outputs.keys, "servo.steps", in: path)
    }
    try vehicleFile.knows(beacon.steps.keys, "beacon.steps", in: path)
    for step in vehicle.steps where beacon.steps[step.id] != nil && step.minor != nil {
      throw ConfigurationError(
        path, "[beacon.steps.\(step.id)]: \(vehicleFile.path) gives that step a minor that never changes")
    }
    tags = try file.tagKeys.map { path throws(ConfigurationError) in try TagKeyFile(reading: path).tags } ?? []
    for tag in tags where vehicle.step(tag.step) == nil {
      throw ConfigurationError(file.tagKeys ?? path, "\(tag.uid): \(vehicleFile.path) has no step \(tag.step)")
    }
    if !policy.acceptsStatic {
      for step in vehicle.steps {
        let rotates = policy.proofs.contains(.beacon) && beacon.steps[step.id] != nil
        let isDynamic = policy.proofs.contains(.nfc) && tags.contains { $0.step == step.id }
        guard rotates || isDynamic else {
          throw ConfigurationError(
            path, "[policy] static: false, and the step \(step.id) has no identifier that cannot be copied")
        }
      }
    }
    try PrivateFile.check(certificate.key)
    try PrivateFile.check(keys.encryption)
    try PrivateFile.check(keys.signing)
    for source in beacon.steps.values { try PrivateFile.check(source.secret) }
  }
}

extension VehicleFile {
  /// Throws when a table of the controller's file is about a step that the vehicle has not.
  fileprivate func knows(
    _ steps: some Collection<StepID>, _ table: String, in path: String
  ) throws(ConfigurationError) {
    let strangers = steps.filter { vehicle.step($0) == nil }
    if let id = strangers.map(\.description).min() {
      throw ConfigurationError(path, "[\(table).\(id)]: \(self.path) has no such step")
    }
  }
}
