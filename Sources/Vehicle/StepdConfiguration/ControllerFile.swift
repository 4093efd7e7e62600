package import Bluetooth
package import Domain
package import FileFormats
package import MQTT
package import StepController
package import StepProtocol

/// `stepd.toml`: what a vehicle's controller needs in addition to the vehicle file.
///
/// In a value that was read, paths are relative to the working folder. In a value to be written (`render`), they are
/// the text of the file, and relative to the file's folder.
package struct ControllerFile: Equatable, Sendable {
  /// The controller's identity at the broker, and the broker's address if it differs from the vehicle file's.
  package struct BrokerLogin: Equatable, Sendable {
    package var identity: Broker.Identity
    /// These three replace those of the vehicle file: on the vehicle, the broker may be `localhost`.
    package var host: String?
    package var port: UInt16?
    package var authority: String?

    package init(identity: Broker.Identity, host: String? = nil, port: UInt16? = nil, authority: String? = nil) {
      self.identity = identity
      self.host = host
      self.port = port
      self.authority = authority
    }
  }

  /// The controller's keys, and the key that verifies its riders' tokens.
  package struct KeyFiles: Equatable, Sendable {
    /// The path of the private X25519 JWK; only its owner may read it.
    package var encryption: String
    /// The path of the private Ed25519 JWK; only its owner may read it.
    package var signing: String
    package var operatorKey: VerificationKey

    package init(encryption: String, signing: String, operatorKey: VerificationKey) {
      self.encryption = encryption
      self.signing = signing
      self.operatorKey = operatorKey
    }
  }

  /// The source of a step's rotating minor, and its sender.
  package struct Beacon: Equatable, Sendable {
    /// The path of the step's secret, a symmetric JWK; only its owner may read it.
    package var secret: String
    /// The radio with which the controller sends; nil if a separate device with the secret and a clock sends.
    package var radio: RadioSpec?

    package init(secret: String, radio: RadioSpec? = nil) {
      self.secret = secret
      self.radio = radio
    }
  }

  /// An adapter at a step that hears riders' devices.
  package struct Ear: Equatable, Sendable {
    package var radio: RadioSpec
    /// The RSSI of a typical device at 1 m from the adapter, dBm.
    package var measuredPower: Int8

    package init(radio: RadioSpec, measuredPower: Int8 = Hearing.usualPower) {
      (self.radio, self.measuredPower) = (radio, measuredPower)
    }
  }

  /// The computer's watchdog, which the controller feeds.
  package struct Watchdog: Equatable, Sendable {
    /// The path of its device.
    package var device: String
    /// The number of seconds without feeding after which it restarts the computer.
    package var timeout: Int

    package init(device: String = Self.standardDevice, timeout: Int = Self.standardTimeout) {
      (self.device, self.timeout) = (device, timeout)
    }

    package static let standardDevice = "/dev/watchdog"
    /// Some small computers' watchdogs cannot count beyond 15.
    package static let standardTimeout = 10
  }

  /// The path of the file, for errors.
  package var path: String
  /// The path of the vehicle file.
  package var vehicle: String
  /// The path of the journal, which the controller writes.
  package var journal = Self.standardJournal
  package var broker: BrokerLogin
  package var keys: KeyFiles
  package var policy = Self.standardPolicy
  /// How long a minor lasts, seconds.
  package var beaconPeriod = RotatingMinor.standardPeriod
  /// For the steps whose iBeacons change their minor in each period.
  package var beacons: [StepID: Beacon] = [:]
  /// The adapters that hear riders' devices.
  package var ears: [StepID: Ear] = [:]
  /// The adapter that takes riders' Bluetooth links, by its number; nil for none.
  package var link: UInt16?
  /// The path of the file with the keys of dynamic tags; only its owner may read it.
  package var tagKeys: String?
  package var profile = Self.standardProfile
  package var servo: ServoHardware
  package var inputs = Inputs()
  package var watchdog: Watchdog?
  /// The path of the file to which the controller writes its counters, for Prometheus.
  package var metrics: String?
  package var trafficGuard: Guard?
  /// The gpsd that says where the vehicle stands, for the events; nil if the events do not tell.
  package var placeReceiver: HostPort?
  /// Where the installer left the steps, `open` or `close`. It is used until there is a journal.
  package var installed = Position.close

  /// Everything else has its usual value.
  package init(
    path: String, vehicle: String, broker: BrokerLogin, keys: KeyFiles, policy: Policy, beacons: [StepID: Beacon],
    tagKeys: String?, servo: ServoHardware, trafficGuard: Guard?
  ) {
    (self.path, self.vehicle, self.broker, self.keys, self.policy) = (path, vehicle, broker, keys, policy)
    (self.beacons, self.tagKeys, self.servo, self.trafficGuard) = (beacons, tagKeys, servo, trafficGuard)
  }

  package static let standardJournal = "journal.json"
  package static let standardServoLog = "servo.jsonl"
  package static let standardPolicy = Policy(methods: [.beacon], zone: .near, proofAge: 10_000)
  package static let standardProfile = MotionProfile(travel: 1_500, limit: 5_000)

  package init(reading path: String) throws {
    try self.init(TOMLDocument(reading: path))
  }

  package init(parsing bytes: [UInt8], path: String) throws(ConfigurationError) {
    try self.init(TOMLDocument(parsing: bytes, path: path))
  }

  enum Key: String, TOMLKey {
    case vehicle, journal, broker, keys, policy, beacon, ears, link, tags, servo, inputs, interlock, watchdog, metrics
    case place
    case trafficGuard = "guard"
  }

  private enum LinkKey: String, TOMLKey {
    case adapter
  }

  private enum TagsKey: String, TOMLKey {
    case keys
  }

  private enum PlaceKey: String, TOMLKey {
    case gpsd
  }

  private enum MetricsKey: String, TOMLKey {
    case file
  }

  init(_ document: TOMLDocument) throws(ConfigurationError) {
    let table = try TOMLTable<Key>(document)
    path = document.path
    vehicle = try table.required(.vehicle, table.path)
    journal = try table.optional(.journal, table.path) ?? document.resolve(journal)
    broker = try BrokerLogin(table.requiredTable(.broker))
    keys = try KeyFiles(table.requiredTable(.keys))
    policy = try table.table(.policy).map(Policy.init) ?? policy
    let beacon = try table.table(.beacon, BeaconKey.self)
    beaconPeriod = try beacon?.optional(.period, .integer(in: RotatingMinor.periods)) ?? beaconPeriod
    for (step, table) in try beacon?.stepTables(.steps, BeaconStepKey.self) ?? [] { beacons[step] = try Beacon(table) }
    if let table = try table.table(.ears, EarsKey.self) {
      for (step, table) in try table.stepTables(.steps, EarKey.self) { ears[step] = try Ear(table) }
    }
    if let table = try table.table(.link, LinkKey.self) {
      let text = try table.required(.adapter, .text)
      guard case .hci(let number)? = try? RadioSpec(text) else {
        throw table.error(.adapter, "expected an adapter of this computer, as \"hci0\"")
      }
      link = number
    }
    if let tags = try table.table(.tags, TagsKey.self) { tagKeys = try tags.required(.keys, tags.path) }
    let servo = try table.requiredTable(.servo, ServoKey.self)
    (self.servo, profile) = (try ServoHardware(servo), try MotionProfile(servo))
    installed = try servo.optional(.installed, .word([.open, .close])) ?? installed
    inputs = try Inputs(table.table(.inputs), table.table(.interlock))
    watchdog = try table.table(.watchdog).map(Watchdog.init)
    if let metrics = try table.table(.metrics, MetricsKey.self) {
      self.metrics = try metrics.required(.file, metrics.path)
    }
    if let place = try table.table(.place, PlaceKey.self) { placeReceiver = try place.required(.gpsd, .receiver) }
    trafficGuard = try table.table(.trafficGuard).map(Guard.init)
  }

  fileprivate enum KeyFilesKey: String, TOMLKey {
    case encryption, signing
    case operatorKey = "operator"
  }

  fileprivate enum PolicyKey: String, TOMLKey {
    case zone, proofs, both
    case leastLinkLevel = "link_dbm"
    case acceptsStatic = "static"
    case proofAge = "proof_age_s"
    case reserve = "reserve_s"
  }

  private enum BeaconKey: String, TOMLKey {
    case period = "period_s"
    case steps
  }

  fileprivate enum BeaconStepKey: String, TOMLKey {
    case secret, adapter
  }

  private enum EarsKey: String, TOMLKey {
    case steps
  }

  fileprivate enum EarKey: String, TOMLKey {
    case adapter
    case measuredPower = "measured_power"
  }

  fileprivate enum WatchdogKey: String, TOMLKey {
    case device
    case timeout = "timeout_s"
  }
}

extension ControllerFile.BrokerLogin {
  fileprivate init(_ table: TOMLTable<VehicleFile.BrokerKey>) throws(ConfigurationError) {
    identity = try Broker.Identity(table)
    host = table.has(.host) ? try table.host(.host, port: "port") : nil
    port = try table.optional(.port, .port)
    authority = try table.optional(.ca, table.path)
  }
}

extension ControllerFile.KeyFiles {
  fileprivate init(_ table: TOMLTable<ControllerFile.KeyFilesKey>) throws(ConfigurationError) {
    encryption = try table.required(.encryption, table.path)
    signing = try table.required(.signing, table.path)
    operatorKey = try table.required(.operatorKey, .verificationKey)
  }
}

extension Policy {
  fileprivate init(_ table: TOMLTable<ControllerFile.PolicyKey>) throws(ConfigurationError) {
    let standard = ControllerFile.standardPolicy
    self.init(
      methods: try table.optional(.proofs, .words(ProofMethod.allCases)) ?? standard.methods,
      acceptsStatic: try table.optional(.acceptsStatic, .boolean) ?? standard.acceptsStatic,
      needsHearing: try table.optional(.both, .boolean) ?? standard.needsHearing,
      leastLinkLevel: try table.optional(.leastLinkLevel, .integer(in: -126...(-1))).map { Int8($0) },
      zone: try table.optional(.zone, .word([.immediate, .near])) ?? standard.zone,
      proofAge: try table.optional(.proofAge, .milliseconds(seconds: 1...60)) ?? standard.proofAge,
      reserve: try table.optional(.reserve, .milliseconds(seconds: 0...600)) ?? standard.reserve)
    guard !needsHearing || methods.contains(.heard) && methods.count > 1 else {
      throw table.error(.both, #"true needs "heard" and at least one other proof in proofs"#)
    }
    guard needsHearing || leastLinkLevel == nil else {
      throw table.error(.leastLinkLevel, "the strength of a link alone proves nothing: it takes both = true")
    }
  }
}

extension ControllerFile.Beacon {
  fileprivate init(_ table: TOMLTable<ControllerFile.BeaconStepKey>) throws(ConfigurationError) {
    secret = try table.required(.secret, table.path)
    guard let text = try table.optional(.adapter, .text) else { return }
    do { radio = try RadioSpec(text) } catch {
      throw table.error(.adapter, error.description)
    }
    guard radio?.canAdvertise == true else {
      throw table.error(.adapter, RadioError.cannotAdvertise(radio: text).description)
    }
  }
}

extension ControllerFile.Ear {
  fileprivate init(_ table: TOMLTable<ControllerFile.EarKey>) throws(ConfigurationError) {
    let text = try table.required(.adapter, .text)
    let radio: RadioSpec
    do { radio = try RadioSpec(text) } catch { throw table.error(.adapter, error.description) }
    guard radio.hearsEveryFrame else {
      throw table.error(.adapter, "\(text) cannot hear riders: it takes an adapter (hci0) or a controller (h4:…)")
    }
    self.init(radio: radio, measuredPower: try table.optional(.measuredPower, .int8) ?? Hearing.usualPower)
  }
}

extension ControllerFile.Watchdog {
  fileprivate init(_ table: TOMLTable<ControllerFile.WatchdogKey>) throws(ConfigurationError) {
    device = try table.optional(.device, table.path) ?? Self.standardDevice
    timeout = try table.optional(.timeout, .integer(in: 2...60)) ?? Self.standardTimeout
  }
}

extension ControllerFile {
  /// The tables whose changes need a restart of the controller: all except `[policy]` and `[tags]`.
  package func changesForRestart(to new: ControllerFile) -> [String] {
    [
      ("vehicle", vehicle != new.vehicle), ("journal", journal != new.journal), ("[broker]", broker != new.broker),
      ("[keys]", keys != new.keys), ("[beacon]", beaconPeriod != new.beaconPeriod || beacons != new.beacons),
      ("[ears]", ears != new.ears), ("[link]", link != new.link),
      ("[servo]", servo != new.servo || profile != new.profile),
      ("[servo] installed", installed != new.installed),
      ("[inputs]", inputs.wirings != new.inputs.wirings), ("[interlock]", inputs.interlock != new.inputs.interlock),
      ("[watchdog]", watchdog != new.watchdog), ("[metrics]", metrics != new.metrics),
      ("[place]", placeReceiver != new.placeReceiver), ("[guard]", trafficGuard != new.trafficGuard),
    ].filter(\.1).map(\.0)
  }
}
