package import Bluetooth
package import Domain
package import MQTT
package import StepController
package import StepProtocol

/// `stepd.toml`: what a vehicle's controller needs in addition to the vehicle file.
///
/// Paths in a value that was read start at the working folder. In a value that is to be written (`render`) they are the
/// text of the file, and start at the file's folder.
package struct ControllerFile: Equatable, Sendable {
  /// How the controller proves to the broker who it is, and where the broker is if not where the vehicle file says.
  package struct BrokerLogin: Equatable, Sendable {
    package var identity: Broker.Identity
    /// These three take the place of the vehicle file's: on the vehicle, the broker may be `localhost`.
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

  /// The controller's keys, and the key that its riders' tokens are signed with.
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

  /// Where a step's rotating minor comes from, and what sends it.
  package struct Beacon: Equatable, Sendable {
    /// The path of the step's secret, a symmetric JWK; only its owner may read it.
    package var secret: String
    /// The radio that the controller sends with; nil when a device of its own sends, which has the secret and a clock.
    package var radio: RadioSpec?

    package init(secret: String, radio: RadioSpec? = nil) {
      self.secret = secret
      self.radio = radio
    }
  }

  /// Where the file is, for errors.
  package var path: String
  /// The path of the vehicle file.
  package var vehicle: String
  /// The path of the journal, which the controller writes.
  package var journal: String
  package var broker: BrokerLogin
  package var keys: KeyFiles
  package var policy: Policy
  /// How long a minor lasts, seconds.
  package var beaconPeriod: Int
  /// Of the steps whose iBeacons change their minor in each period.
  package var beacons: [StepID: Beacon]
  /// The path of the file with the keys of dynamic tags; only its owner may read it.
  package var tagKeys: String?
  package var profile: MotionProfile
  package var servo: ServoHardware
  /// Where the installer left the steps, `open` or `close`: it holds until there is a journal.
  package var installed: Position

  package init(
    path: String, vehicle: String = "vehicle.toml", journal: String = Self.standardJournal, broker: BrokerLogin,
    keys: KeyFiles, policy: Policy = Self.standardPolicy, beaconPeriod: Int = RotatingMinor.standardPeriod,
    beacons: [StepID: Beacon] = [:], tagKeys: String? = nil, profile: MotionProfile = Self.standardProfile,
    servo: ServoHardware, installed: Position = .close
  ) {
    self.path = path
    self.vehicle = vehicle
    self.journal = journal
    self.broker = broker
    self.keys = keys
    self.policy = policy
    self.beaconPeriod = beaconPeriod
    self.beacons = beacons
    self.tagKeys = tagKeys
    self.profile = profile
    self.servo = servo
    self.installed = installed
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

  private enum Key: String, TOMLKey {
    case vehicle, journal, broker, keys, policy, beacon, tags, servo
  }

  private enum TagsKey: String, TOMLKey {
    case keys
  }

  init(_ document: TOMLDocument) throws(ConfigurationError) {
    let table = try TOMLTable<Key>(document)
    path = document.path
    vehicle = try table.required(.vehicle, table.path)
    journal = try table.optional(.journal, table.path) ?? document.resolve(Self.standardJournal)
    broker = try BrokerLogin(table.requiredTable(.broker))
    keys = try KeyFiles(table.requiredTable(.keys))
    policy = try table.table(.policy).map(Policy.init) ?? Self.standardPolicy
    let beacon = try table.table(.beacon, BeaconKey.self)
    beaconPeriod =
      try beacon?.optional(.period, .integer(in: RotatingMinor.periods)) ?? RotatingMinor.standardPeriod
    beacons = [:]
    for (step, table) in try beacon?.stepTables(.steps, BeaconStepKey.self) ?? [] { beacons[step] = try Beacon(table) }
    if let tags = try table.table(.tags, TagsKey.self) { tagKeys = try tags.required(.keys, tags.path) }
    let servo = try table.requiredTable(.servo, ServoKey.self)
    (self.servo, profile) = (try ServoHardware(servo), try MotionProfile(servo))
    installed = try servo.optional(.installed, .word([.open, .close])) ?? .close
  }

  fileprivate enum KeyFilesKey: String, TOMLKey {
    case encryption, signing
    case operatorKey = "operator"
  }

  fileprivate enum PolicyKey: String, TOMLKey {
    case zone, proofs
    case acceptsStatic = "static"
    case proofAge = "proof_age_s"
  }

  private enum BeaconKey: String, TOMLKey {
    case period = "period_s"
    case steps
  }

  fileprivate enum BeaconStepKey: String, TOMLKey {
    case secret, adapter
  }

  fileprivate enum ServoKey: String, TOMLKey {
    case driver, log, root, steps, installed
    case travel = "travel_s"
    case limit = "limit_s"
    case frequency = "frequency_hz"
  }

  fileprivate enum ServoStepKey: String, TOMLKey {
    case chip, channel
    case closedPulse = "closed_us"
    case openPulse = "open_us"
  }
}

extension ControllerFile.BrokerLogin {
  fileprivate init(_ table: TOMLTable<VehicleFile.BrokerKey>) throws(ConfigurationError) {
    identity = try Broker.Identity(table)
    host = try table.optional(.host, .text)
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
      zone: try table.optional(.zone, .word([.immediate, .near])) ?? standard.zone,
      proofAge: try table.optional(.proofAge, .milliseconds(seconds: 1...60)) ?? standard.proofAge)
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

extension MotionProfile {
  fileprivate init(_ table: TOMLTable<ControllerFile.ServoKey>) throws(ConfigurationError) {
    let standard = ControllerFile.standardProfile
    self.init(
      travel: try table.optional(.travel, .milliseconds(seconds: 0.2...20)) ?? standard.travel,
      limit: try table.optional(.limit, .milliseconds(seconds: 0.2...60)) ?? standard.limit)
    guard limit > travel else {
      throw table.error(.limit, "\(TOMLText.seconds(limit)) is not more than travel_s, \(TOMLText.seconds(travel))")
    }
  }
}

extension ServoHardware {
  private enum Driver: String, CaseIterable {
    case simulated, pwm
  }

  /// The other driver's keys are read too, so that a mistake in them shows before someone chooses that driver.
  fileprivate init(_ table: TOMLTable<ControllerFile.ServoKey>) throws(ConfigurationError) {
    let driver = try table.required(.driver, .word(Driver.allCases))
    let log = try table.optional(.log, table.path) ?? table.document.resolve(ControllerFile.standardServoLog)
    let outputs = try PWMOutputs(table)
    self =
      switch driver {
      case .simulated: .simulated(log: log)
      case .pwm: .pwm(outputs)
      }
  }
}

extension PWMOutputs {
  fileprivate init(_ table: TOMLTable<ControllerFile.ServoKey>) throws(ConfigurationError) {
    // An SG90 turns from 500 to 2,500 µs. A pulse far outside of that drives a servo against its stop.
    let pulse = TOMLForm.integer(in: 400...2600)
    var channels: [StepID: PWMChannel] = [:]
    for (step, table) in try table.stepTables(.steps, ControllerFile.ServoStepKey.self) {
      let channel = PWMChannel(
        chip: try table.required(.chip, .integer(in: 0...255)),
        channel: try table.required(.channel, .integer(in: 0...255)),
        closedPulse: try table.optional(.closedPulse, pulse) ?? PWMChannel.standardClosedPulse,
        openPulse: try table.optional(.openPulse, pulse) ?? PWMChannel.standardOpenPulse)
      guard channel.closedPulse != channel.openPulse else {
        throw table.error(.openPulse, "\(channel.openPulse) is the same as closed_us")
      }
      for (other, taken) in channels where (taken.chip, taken.channel) == (channel.chip, channel.channel) {
        throw table.error(.channel, "\(channel.channel) of chip \(channel.chip) is the servo of the step \"\(other)\"")
      }
      channels[step] = channel
    }
    self.init(
      root: try table.optional(.root, table.path) ?? Self.standardRoot,
      frequency: try table.optional(.frequency, .integer(in: 40...333)) ?? Self.standardFrequency, channels: channels)
  }
}
