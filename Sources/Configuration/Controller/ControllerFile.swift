package import Bluetooth
package import Domain
import Geography
package import MQTT
import Positioning
package import StepController
package import StepProtocol
package import Traffic
package import TrafficFeed

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

  /// An adapter at a step that hears riders' devices.
  package struct Ear: Equatable, Sendable {
    package var radio: RadioSpec
    /// The RSSI of a usual device at 1 m of the adapter, dBm.
    package var measuredPower: Int8

    package init(radio: RadioSpec, measuredPower: Int8 = Hearing.usualPower) {
      (self.radio, self.measuredPower) = (radio, measuredPower)
    }
  }

  /// A watchdog of the computer's, which the controller feeds.
  package struct Watchdog: Equatable, Sendable {
    /// The path of its device.
    package var device: String
    /// After how many seconds without being fed it restarts the computer.
    package var timeout: Int

    package init(device: String = Self.standardDevice, timeout: Int = Self.standardTimeout) {
      (self.device, self.timeout) = (device, timeout)
    }

    package static let standardDevice = "/dev/watchdog"
    /// Of the small computers' own, one counts no further than 15.
    package static let standardTimeout = 10
  }

  /// Where a traffic feed comes from, and how it is written.
  package struct Feed: Equatable, Sendable {
    package var address: FeedAddress
    package var credentials: FeedConnection.Credentials
    /// Metres around the vehicle that the bridge is asked for.
    package var radius: Double
    package var axes: FeedFrame.Axes

    package init(
      address: FeedAddress, credentials: FeedConnection.Credentials, radius: Double = Self.standardRadius,
      axes: FeedFrame.Axes = .latlon
    ) {
      (self.address, self.credentials, self.radius, self.axes) = (address, credentials, radius, axes)
    }

    /// What comes at 200 km/h is further away than the guard looks ahead.
    package static let standardRadius = 300.0
  }

  /// Where a step is along its vehicle, metres behind the front, and how far it comes out.
  package struct StepSpan: Equatable, Sendable {
    package var from: Double
    package var to: Double
    package var reach: Double

    package init(from: Double, to: Double, reach: Double) { (self.from, self.to, self.reach) = (from, to, reach) }
  }

  /// What holds a step back while something on the road comes towards it.
  package struct Guard: Equatable, Sendable {
    package var feed: Feed
    /// Where the vehicle's place comes from, if it was not surveyed.
    package var receiver: HostPort?
    package var source: TrafficRules.Source
    /// Whether the vehicle is looked for in the feed.
    package var isInFeed: Bool
    package var refusesBlind: Bool
    /// Metres.
    package var length: Double
    package var width: Double
    package var steps: [StepID: StepSpan]

    package init(
      feed: Feed, receiver: HostPort? = nil, source: TrafficRules.Source, isInFeed: Bool = false,
      refusesBlind: Bool = false, length: Double, width: Double, steps: [StepID: StepSpan]
    ) {
      self.feed = feed
      self.receiver = receiver
      self.source = source
      self.isInFeed = isInFeed
      self.refusesBlind = refusesBlind
      self.length = length
      self.width = width
      self.steps = steps
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
  /// The adapters that hear riders' devices.
  package var ears: [StepID: Ear]
  /// The path of the file with the keys of dynamic tags; only its owner may read it.
  package var tagKeys: String?
  package var profile: MotionProfile
  package var servo: ServoHardware
  package var inputs: Inputs
  package var watchdog: Watchdog?
  /// The path of the file that the controller writes its counters to, for Prometheus.
  package var metrics: String?
  package var trafficGuard: Guard?
  /// Where the installer left the steps, `open` or `close`: it holds until there is a journal.
  package var installed: Position

  package init(
    path: String, vehicle: String = "vehicle.toml", journal: String = Self.standardJournal, broker: BrokerLogin,
    keys: KeyFiles, policy: Policy = Self.standardPolicy, beaconPeriod: Int = RotatingMinor.standardPeriod,
    beacons: [StepID: Beacon] = [:], ears: [StepID: Ear] = [:], tagKeys: String? = nil,
    profile: MotionProfile = Self.standardProfile, servo: ServoHardware, inputs: Inputs = Inputs(),
    watchdog: Watchdog? = nil, metrics: String? = nil, trafficGuard: Guard? = nil, installed: Position = .close
  ) {
    self.path = path
    self.vehicle = vehicle
    self.journal = journal
    self.broker = broker
    self.keys = keys
    self.policy = policy
    self.beaconPeriod = beaconPeriod
    self.beacons = beacons
    self.ears = ears
    self.tagKeys = tagKeys
    self.profile = profile
    self.servo = servo
    self.inputs = inputs
    self.watchdog = watchdog
    self.metrics = metrics
    self.trafficGuard = trafficGuard
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

  enum Key: String, TOMLKey {
    case vehicle, journal, broker, keys, policy, beacon, ears, tags, servo, inputs, interlock, watchdog, metrics
    case trafficGuard = "guard"
  }

  private enum TagsKey: String, TOMLKey {
    case keys
  }

  private enum MetricsKey: String, TOMLKey {
    case file
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
    ears = [:]
    if let table = try table.table(.ears, EarsKey.self) {
      for (step, table) in try table.stepTables(.steps, EarKey.self) { ears[step] = try Ear(table) }
    }
    if let tags = try table.table(.tags, TagsKey.self) { tagKeys = try tags.required(.keys, tags.path) }
    let servo = try table.requiredTable(.servo, ServoKey.self)
    (self.servo, profile) = (try ServoHardware(servo), try MotionProfile(servo))
    installed = try servo.optional(.installed, .word([.open, .close])) ?? .close
    inputs = try Inputs(table.table(.inputs), table.table(.interlock))
    watchdog = try table.table(.watchdog).map(Watchdog.init)
    if let metrics = try table.table(.metrics, MetricsKey.self) {
      self.metrics = try metrics.required(.file, metrics.path)
    }
    trafficGuard = try table.table(.trafficGuard).map(Guard.init)
  }

  fileprivate enum KeyFilesKey: String, TOMLKey {
    case encryption, signing
    case operatorKey = "operator"
  }

  fileprivate enum PolicyKey: String, TOMLKey {
    case zone, proofs, both
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

  enum ServoKey: String, TOMLKey {
    case driver, log, root, bus, address, steps, installed
    case travel = "travel_s"
    case limit = "limit_s"
    case frequency = "frequency_hz"
  }

  enum ServoStepKey: String, TOMLKey {
    case chip, channel
    case closedPulse = "closed_us"
    case openPulse = "open_us"
  }

  fileprivate enum InputsKey: String, TOMLKey {
    case enable, steps
  }

  fileprivate enum StepInputsKey: String, TOMLKey {
    case clear
    case endOpen = "end_open"
    case endClosed = "end_closed"
  }

  fileprivate enum InterlockKey: String, TOMLKey {
    case standing, moving, lost
  }

  fileprivate enum InputKey: String, TOMLKey {
    case source
    case isActiveLow = "active_low"
    case debounce = "debounce_ms"
  }

  fileprivate enum GuardKey: String, TOMLKey {
    case feed, ca, cert, key, axes, place, gpsd, latitude, longitude, blind, steps
    case radius = "radius_m"
    case heading = "heading_deg"
    case error = "error_m"
    case length = "length_m"
    case width = "width_m"
  }

  fileprivate enum GuardStepKey: String, TOMLKey {
    case from = "from_m"
    case to = "to_m"
    case reach = "reach_m"
  }

  fileprivate enum WatchdogKey: String, TOMLKey {
    case device
    case timeout = "timeout_s"
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
      needsHearing: try table.optional(.both, .boolean) ?? standard.needsHearing,
      zone: try table.optional(.zone, .word([.immediate, .near])) ?? standard.zone,
      proofAge: try table.optional(.proofAge, .milliseconds(seconds: 1...60)) ?? standard.proofAge,
      reserve: try table.optional(.reserve, .milliseconds(seconds: 0...600)) ?? standard.reserve)
    guard !needsHearing || methods.contains(.heard) && methods.count > 1 else {
      throw table.error(.both, #"true takes "heard" and another proof in proofs"#)
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
    case simulated, pwm, pca9685
  }

  /// The other drivers' keys are read too, so that a mistake in them shows before someone chooses that driver.
  fileprivate init(_ table: TOMLTable<ControllerFile.ServoKey>) throws(ConfigurationError) {
    let driver = try table.required(.driver, .word(Driver.allCases))
    let log = try table.optional(.log, table.path) ?? table.document.resolve(ControllerFile.standardServoLog)
    let root = try table.optional(.root, table.path) ?? PWMOutputs.standardRoot
    let bus = try table.optional(.bus, table.path) ?? PCA9685Outputs.standardBus
    let address = try table.optional(.address, .deviceAddress) ?? PCA9685Outputs.standardAddress
    let frequency = try table.optional(.frequency, .integer(in: 40...333)) ?? PWMOutputs.standardFrequency
    var servos = WiredServos(takesChip: driver != .pca9685, outputs: driver == .pca9685 ? 16 : 256)
    for (step, table) in try table.stepTables(.steps, ControllerFile.ServoStepKey.self) { try servos.add(step, table) }
    self =
      switch driver {
      case .simulated: .simulated(log: log)
      case .pwm: .pwm(PWMOutputs(root: root, frequency: frequency, channels: servos.channels))
      case .pca9685:
        .pca9685(
          PCA9685Outputs(
            bus: bus, address: address, frequency: frequency,
            channels: servos.channels.mapValues { PCA9685Channel(channel: $0.channel, pulses: $0.pulses) }))
      }
  }
}

/// `[servo.steps]`.
private struct WiredServos {
  /// Whether there may be several chips.
  let takesChip: Bool
  /// How many outputs a chip has.
  let outputs: Int
  private(set) var channels: [StepID: PWMChannel] = [:]

  init(takesChip: Bool, outputs: Int) { (self.takesChip, self.outputs) = (takesChip, outputs) }

  mutating func add(_ step: StepID, _ table: TOMLTable<ControllerFile.ServoStepKey>) throws(ConfigurationError) {
    // An SG90 turns from 500 to 2,500 µs. A pulse far outside of that drives a servo against its stop.
    let pulse = TOMLForm.integer(in: 400...2600)
    if !takesChip, table.has(.chip) {
      throw table.error(.chip, "a PCA9685 is one chip: give bus and address in [servo]")
    }
    var channel = PWMChannel(
      chip: takesChip ? try table.required(.chip, .integer(in: 0...255)) : 0,
      channel: try table.required(.channel, .integer(in: 0...outputs - 1)))
    if let closed = try table.optional(.closedPulse, pulse) { channel.pulses.closed = closed }
    if let open = try table.optional(.openPulse, pulse) { channel.pulses.open = open }
    guard channel.pulses.closed != channel.pulses.open else {
      throw table.error(.openPulse, "\(channel.pulses.open) is the same as closed_us")
    }
    for (other, taken) in channels where (taken.chip, taken.channel) == (channel.chip, channel.channel) {
      let chip = takesChip ? " of chip \(channel.chip)" : ""
      throw table.error(.channel, "\(channel.channel)\(chip) is the servo of the step \"\(other)\"")
    }
    channels[step] = channel
  }
}

extension TOMLForm<Int> {
  /// Of a device on an I²C bus: seven bits, without those that are kept for other uses.
  fileprivate static var deviceAddress: TOMLForm {
    TOMLForm(
      expectation: "an integer from 0x40 to 0x77, and not 0x70, to which all boards listen",
      read: { integer(in: 0x40...0x77).read($0).flatMap { $0 == 0x70 ? nil : $0 } },
      describe: { if case .integer(let value) = $0 { "0x\(String(value, radix: 16))" } else { $0.description } })
  }
}

extension Inputs {
  fileprivate init(
    _ inputs: TOMLTable<ControllerFile.InputsKey>?, _ interlock: TOMLTable<ControllerFile.InterlockKey>?
  ) throws(ConfigurationError) {
    self.init()
    if let inputs {
      try add(.enable, .enable, in: inputs)
      for (step, table) in try inputs.stepTables(.steps, ControllerFile.StepInputsKey.self) {
        try add(.clear(step), .clear, in: table)
        try add(.endOpen(step), .endOpen, in: table)
        try add(.endClosed(step), .endClosed, in: table)
      }
    }
    guard let interlock else { return }
    try add(.standing, .standing, in: interlock)
    // Without the input the rest of the table would say nothing.
    guard wirings[.standing] != nil else { throw interlock.missing(.standing) }
    self.interlock = Interlock(
      onMoving: try interlock.optional(.moving, .word(Interlock.OnMoving.allCases)) ?? .warn,
      countsLostAsMoving: try interlock.optional(.lost, .word(Lost.allCases)) != .standing)
  }

  private enum Lost: String, CaseIterable {
    case moving, standing
  }

  /// Adds the input that a key names, if it is there: by its source alone, or by a table.
  private mutating func add<Key>(
    _ sensor: SensorID, _ key: Key, in table: TOMLTable<Key>
  ) throws(ConfigurationError) {
    let source = TOMLForm.inputSource(in: table.document)
    var wiring: InputWiring
    if table.isTable(key), let details = try table.table(key, ControllerFile.InputKey.self) {
      wiring = InputWiring(try details.required(.source, source))
      wiring.isActiveLow = try details.optional(.isActiveLow, .boolean) ?? false
      wiring.debounce = Int64(
        try details.optional(.debounce, .integer(in: 0...5000)) ?? Int(InputWiring.standardDebounce))
    } else {
      guard let found = try table.optional(key, source) else { return }
      wiring = InputWiring(found)
    }
    if let other = wirings.first(where: { $0.value.source == wiring.source }) {
      throw table.error(key, "\(wiring.source.text) is \(other.key.configurationKey) already")
    }
    wirings[sensor] = wiring
  }
}

extension TOMLForm<InputSource> {
  /// `gpio:/dev/gpiochip0:3` or `file:/run/vehicle/standing`.
  fileprivate static func inputSource(in document: TOMLDocument) -> TOMLForm {
    TOMLForm(expectation: #""gpio:/dev/CHIP:LINE" or "file:PATH""#) {
      guard let text = TOMLForm<String>.text.read($0), let colon = text.firstIndex(of: ":") else { return nil }
      let rest = text[text.index(after: colon)...]
      switch text[..<colon] {
      case "file":
        return rest.isEmpty || rest.hasSuffix("/") ? nil : .file(document.resolve(String(rest)))
      case "gpio":
        guard let end = rest.lastIndex(of: ":"), rest.hasPrefix("/") else { return nil }
        let number = rest[rest.index(after: end)...]
        guard let line = Int(number), "\(line)" == number, (0..<1024).contains(line) else { return nil }
        return .gpio(chip: String(rest[..<end]), line: line)
      default:
        return nil
      }
    }
  }
}

extension InputSource {
  /// As the file has it.
  var text: String {
    switch self {
    case .gpio(let chip, let line): "gpio:\(chip):\(line)"
    case .file(let path): "file:\(path)"
    }
  }
}

extension SensorID {
  /// Where the file has it.
  fileprivate var configurationKey: String {
    switch self {
    case .clear(let step): "[inputs.steps.\(step)] clear"
    case .endOpen(let step): "[inputs.steps.\(step)] end_open"
    case .endClosed(let step): "[inputs.steps.\(step)] end_closed"
    case .standing: "[interlock] standing"
    case .enable: "[inputs] enable"
    }
  }
}

extension ControllerFile.Watchdog {
  fileprivate init(_ table: TOMLTable<ControllerFile.WatchdogKey>) throws(ConfigurationError) {
    device = try table.optional(.device, table.path) ?? Self.standardDevice
    timeout = try table.optional(.timeout, .integer(in: 2...60)) ?? Self.standardTimeout
  }
}

extension ControllerFile.Guard {
  /// Where the vehicle's place comes from, as the file has it.
  enum Place: String, CaseIterable {
    case fixed, gpsd, feed
  }

  private enum Blind: String, CaseIterable {
    case allow, refuse
  }

  fileprivate init(_ table: TOMLTable<ControllerFile.GuardKey>) throws(ConfigurationError) {
    feed = try ControllerFile.Feed(table)
    refusesBlind = try table.optional(.blind, .word(Blind.allCases)) == .refuse
    length = try table.required(.length, .number(in: 1...30))
    width = try table.required(.width, .number(in: 0.5...5))
    steps = [:]
    for (step, table) in try table.stepTables(.steps, ControllerFile.GuardStepKey.self) {
      steps[step] = try ControllerFile.StepSpan(table, length: length)
    }
    let place = try table.required(.place, .word(Place.allCases))
    isInFeed = place == .feed
    let latitude = try table.optional(.latitude, .number(in: -90...90))
    let longitude = try table.optional(.longitude, .number(in: -180...180))
    let heading = try table.optional(.heading, .number(in: 0...360)).map { $0 * .pi / 180 }
    let error = try table.optional(.error, .number(in: 0...TrafficGuard.mostPlaceError))
    if let text = try table.optional(.gpsd, .text) {
      guard let receiver = try? HostPort(text[...], usual: GPSConnection.usual.port) else {
        throw table.error(.gpsd, "expected HOST[:PORT]")
      }
      self.receiver = receiver
    }
    func refuse(_ keys: ControllerFile.GuardKey..., because reason: String) throws(ConfigurationError) {
      for key in keys where table.has(key) { throw table.error(key, reason) }
    }
    switch place {
    case .fixed: try refuse(.gpsd, because: #"is not used with place = "fixed""#)
    case .gpsd: receiver = receiver ?? GPSConnection.usual
    case .feed: try refuse(.heading, because: "the feed says where the vehicle points to")
    }
    if receiver != nil {
      try refuse(.latitude, .longitude, .error, because: "gpsd says where the vehicle is")
      source = .receiver(heading: heading)
      return
    }
    guard let latitude else { throw table.missing(.latitude) }
    guard let longitude else { throw table.missing(.longitude) }
    if place == .fixed, heading == nil { throw table.missing(.heading) }
    // Both are within the range of a coordinate.
    let position = Coordinate(latitude: latitude, longitude: longitude)!
    let standard = place == .feed ? TrafficGuard.mostPlaceError : TrafficGuard.survey
    source = .given(position, error: error ?? standard, heading: heading ?? 0)
  }
}

extension ControllerFile.Feed {
  fileprivate init(_ table: TOMLTable<ControllerFile.GuardKey>) throws(ConfigurationError) {
    let text = try table.required(.feed, .text)
    do { address = try FeedAddress(text) } catch { throw table.error(.feed, error.description) }
    if case .recording(let path) = address { address = .recording(table.document.resolve(path)) }
    credentials = .init(
      authorities: try table.optional(.ca, table.path), certificate: try table.optional(.cert, table.path),
      key: try table.optional(.key, table.path))
    if (credentials.certificate == nil) != (credentials.key == nil) {
      throw table.missing(credentials.key == nil ? .key : .cert)
    }
    radius = try table.optional(.radius, .number(in: ClientLocation.radii)) ?? Self.standardRadius
    axes = try table.optional(.axes, .word(FeedFrame.Axes.allCases)) ?? .latlon
  }
}

extension ControllerFile.StepSpan {
  fileprivate init(_ table: TOMLTable<ControllerFile.GuardStepKey>, length: Double) throws(ConfigurationError) {
    from = try table.required(.from, .number(in: 0...length))
    to = try table.required(.to, .number(in: 0...length))
    reach = try table.required(.reach, .number(in: 0.05...2))
    guard to > from else { throw table.error(.to, "\(TOMLText.number(to)) is not more than from_m") }
  }
}

extension ControllerFile {
  /// The tables whose changes take a restart of the controller, as the file has them: all but `[policy]` and `[tags]`.
  package func changesForRestart(to new: ControllerFile) -> [String] {
    [
      ("vehicle", vehicle != new.vehicle), ("journal", journal != new.journal), ("[broker]", broker != new.broker),
      ("[keys]", keys != new.keys), ("[beacon]", beaconPeriod != new.beaconPeriod || beacons != new.beacons),
      ("[ears]", ears != new.ears), ("[servo]", servo != new.servo || profile != new.profile),
      ("[servo] installed", installed != new.installed),
      ("[inputs]", inputs.wirings != new.inputs.wirings), ("[interlock]", inputs.interlock != new.inputs.interlock),
      ("[watchdog]", watchdog != new.watchdog), ("[metrics]", metrics != new.metrics),
      ("[guard]", trafficGuard != new.trafficGuard),
    ].filter(\.1).map(\.0)
  }
}
