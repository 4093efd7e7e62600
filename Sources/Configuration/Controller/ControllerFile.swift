/// `stepd.toml`: what a vehicle's controller needs besides the vehicle file.
///
/// Paths in a value that was read lead from the working folder; in one that is to be written (`render`) they are the
/// text that will stand in the file, and lead from the file's folder.
package struct ControllerFile: Equatable, Sendable {
  /// Where the file is, for errors.
  package var path: String
  /// The path of the vehicle file.
  package var vehicle: String
  /// The path of the journal, which the controller writes.
  package var journal: String
  package var broker: BrokerLogin
  package var keys: KeyFiles
  package var policy: AccessPolicy
  package var beacon: BeaconSettings
  /// The path of the file with the keys of dynamic tags; nobody but its owner may read it.
  package var tagKeys: String?
  package var servo: ServoSettings

  package init(
    path: String, vehicle: String = "vehicle.toml", journal: String = Self.standardJournal, broker: BrokerLogin,
    keys: KeyFiles, policy: AccessPolicy = AccessPolicy(), beacon: BeaconSettings = BeaconSettings(),
    tagKeys: String? = nil, servo: ServoSettings
  ) {
    self.path = path
    self.vehicle = vehicle
    self.journal = journal
    self.broker = broker
    self.keys = keys
    self.policy = policy
    self.beacon = beacon
    self.tagKeys = tagKeys
    self.servo = servo
  }

  package static let standardJournal = "journal.json"

  package init(reading path: String) throws(ConfigurationError) {
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

  private init(_ document: TOMLDocument) throws(ConfigurationError) {
    let table = try TOMLTable<Key>(document)
    path = document.path
    vehicle = try table.required(.vehicle, table.path)
    journal = try table.optional(.journal, table.path) ?? document.resolve(Self.standardJournal)
    broker = try BrokerLogin(table.requiredTable(.broker))
    keys = try KeyFiles(table.requiredTable(.keys))
    policy = try table.table(.policy).map(AccessPolicy.init) ?? AccessPolicy()
    beacon = try table.table(.beacon).map(BeaconSettings.init) ?? BeaconSettings()
    if let tags = try table.table(.tags, TagsKey.self) { tagKeys = try tags.required(.keys, tags.path) }
    servo = try ServoSettings(table.requiredTable(.servo))
  }
}
