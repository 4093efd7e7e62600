package import Bluetooth
package import Domain
import FileFormats
package import MQTT
package import StepController
import StepProtocol
import Traffic
import TrafficFeed

/// Everything that a controller needs: `stepd.toml`, and the files that it names, read and checked against each other.
package struct ControllerSetup: Sendable {
  /// `stepd.toml`.
  package let file: ControllerFile
  package let vehicle: Vehicle
  package let topic: TopicPrefix
  package let broker: Broker
  /// The path of the journal.
  package let journal: String
  /// Where the steps are while there is no journal.
  package let installed: Position
  package let keys: Controller.Keys
  package let policy: Policy
  package let secrets: StepSecrets
  package let profile: MotionProfile
  package let servo: ServoHardware
  package let inputs: Inputs
  package let watchdog: ControllerFile.Watchdog?
  /// What delays a step while something approaches it, and the settings for it.
  package let trafficGuard: (feed: ControllerFile.Feed, receiver: HostPort?, rules: TrafficRules)?
  /// The radios that send steps' beacons. A step without one has another sender, or no beacon.
  package let beaconRadios: [StepID: RadioSpec]
  /// The adapters that hear riders' devices; empty if no proof needs them.
  package let ears: [StepID: ControllerFile.Ear]

  /// Reads all files except certificates and the journal.
  ///
  /// - Throws: if a file is wrong, if the files contradict one another, or if others can read a private key.
  package init(reading path: String) throws {
    let document = try TOMLDocument(reading: path)
    let file = try ControllerFile(document)
    self.file = file
    let vehicleFile = try VehicleFile(reading: file.vehicle)
    let purpose = "the controller needs it"
    let (login, known) = (file.broker, vehicleFile.broker)
    vehicle = vehicleFile.vehicle
    topic = try vehicleFile.present(vehicleFile.topic, "topic", purpose)
    broker = Broker(
      host: try vehicleFile.present(login.host ?? known?.host, "[broker]", purpose),
      port: login.port ?? known?.port ?? Broker.standardPort,
      tls: .init(
        authority: try vehicleFile.present(login.authority ?? known?.tls?.authority, "[broker]", purpose),
        identity: login.identity))
    try KeyFile.checkPrivate(login.identity.key)
    journal = file.journal
    installed = file.installed
    policy = file.policy
    profile = file.profile
    servo = file.servo
    inputs = file.inputs
    watchdog = file.watchdog
    trafficGuard = file.trafficGuard.map { ($0.feed, $0.receiver, $0.rules(of: vehicleFile.vehicle)) }
    if let key = file.trafficGuard?.feed.credentials.key { try KeyFile.checkPrivate(key) }
    beaconRadios = file.beacons.compactMapValues(\.radio)
    ears = file.policy.methods.contains(.heard) ? file.ears : [:]
    let tags = try file.tagKeys.map(TagKeyFile.init(reading:))
    try file.check(against: vehicleFile, tags, in: document)
    keys = Controller.Keys(
      decryption: try KeyFile.decryptionKey(file.keys.encryption), signing: try KeyFile.signingKey(file.keys.signing),
      operatorKey: file.keys.operatorKey)
    var secrets = StepSecrets()
    for (step, beacon) in file.beacons {
      secrets.minors[step] = RotatingMinor(
        secret: try KeyFile.beaconSecret(beacon.secret), step: step, period: file.beaconPeriod)
    }
    for tag in tags?.tags ?? [] { secrets.tags[tag.uid] = .init(step: tag.step, keys: tag.keys) }
    self.secrets = secrets
  }
}

extension ControllerFile {
  /// Throws if the files contradict one another, or if the policy could never let a step move.
  fileprivate func check(
    against vehicleFile: VehicleFile, _ tags: TagKeyFile?, in document: TOMLDocument
  ) throws(ConfigurationError) {
    let steps = vehicleFile.vehicle.steps
    func checkKnown(_ ids: some Collection<StepID>, _ table: String) throws(ConfigurationError) {
      let unknown = ids.filter { vehicleFile.vehicle.step($0) == nil }.map(\.description).min()
      guard let unknown else { return }
      throw document.error(
        at: [table, "steps", unknown], "[\(table).steps.\(unknown)]: \(vehicleFile.path) has no such step")
    }
    let driven: Set<StepID>? =
      switch servo {
      case .simulated: nil
      case .pwm(let outputs): Set(outputs.channels.keys)
      case .pca9685(let outputs): Set(outputs.channels.keys)
      }
    if let driven {
      for step in steps where !driven.contains(step.id) {
        throw document.error(at: ["servo"], "[servo.steps.\(step.id)] is missing: the vehicle has that step")
      }
      try checkKnown(driven, "servo")
    }
    try checkKnown(inputs.wirings.keys.compactMap(\.step), "inputs")
    try checkKnown(beacons.keys, "beacon")
    try checkKnown(ears.keys, "ears")
    try checkEars(at: steps, in: document)
    if let trafficGuard {
      try checkKnown(trafficGuard.steps.keys, "guard")
      for step in steps where trafficGuard.steps[step.id] == nil {
        throw document.error(at: ["guard"], "[guard.steps.\(step.id)] is missing: the vehicle has that step")
      }
    }
    for step in steps where beacons[step.id] != nil && step.minor != nil {
      throw document.error(
        at: ["beacon", "steps", step.id.description],
        "[beacon.steps.\(step.id)]: \(vehicleFile.path) gives that step a minor that never changes")
    }
    if let tags, let tag = tags.tags.first(where: { vehicleFile.vehicle.step($0.step) == nil }) {
      throw ConfigurationError(tags.path, "\(tag.uid): \(vehicleFile.path) has no step \(tag.step)")
    }
    // What the vehicle hears cannot be copied either.
    guard !policy.acceptsStatic, policy.needsHearing || !policy.methods.contains(.heard) else { return }
    for step in steps {
      let rotates = policy.methods.contains(.beacon) && beacons[step.id] != nil
      let isDynamic = policy.methods.contains(.nfc) && tags?.tags.contains { $0.step == step.id } == true
      guard rotates || isDynamic else {
        throw document.error(
          at: ["policy", "static"],
          "[policy] static: false, and the step \(step.id) has no identifier that cannot be copied")
      }
    }
  }
}

extension ControllerFile.Guard {
  fileprivate func rules(of vehicle: Vehicle) -> TrafficRules {
    TrafficRules(
      source: source, isInFeed: isInFeed, length: length, width: width,
      steps: vehicle.steps.compactMap { step in
        steps[step.id].map { .init(id: step.id, side: step.side, from: $0.from, to: $0.to, reach: $0.reach) }
      }, refusesBlind: refusesBlind)
  }
}

extension ControllerFile {
  /// Throws if the vehicle is to hear riders but could not tell at which step.
  private func checkEars(at steps: [Step], in document: TOMLDocument) throws(ConfigurationError) {
    for step in steps {
      guard let ear = ears[step.id] else {
        if !policy.methods.contains(.heard) { continue }
        throw document.error(
          at: ["policy", "proofs"],
          #"[policy] proofs: "heard" takes an adapter at each step; [ears.steps.\#(step.id)] is missing"#)
      }
      func fail(_ reason: String) -> ConfigurationError {
        document.error(
          at: ["ears", "steps", step.id.description], "[ears.steps.\(step.id)] adapter: \(ear.radio) \(reason)")
      }
      if let other = steps.first(where: { $0.id != step.id && ears[$0.id]?.radio == ear.radio }) {
        throw fail("hears for the step \(other.id) too, so nobody could tell the sides")
      }
      if case .h4 = ear.radio, beacons.values.contains(where: { $0.radio == ear.radio }) {
        throw fail("sends a beacon, and takes one connection only")
      }
    }
  }
}
