package import Configuration
package import Domain
import Encoding
import Glibc
package import StepProtocol
import SystemIO

/// The keys of a dynamic tag.
package struct DynamicTagSecrets: Sendable {
  /// The tag's key 0, which may change all others. The vehicle does not need it.
  package let master: [UInt8]
  /// Those that the controller verifies its messages with.
  package let verifying: DynamicTag.Keys
  /// Whether a tag has them all. Who sends them to one that has the factory's, whose key everybody knows, gives them to
  /// a copy of its UID.
  package let areTaken: Bool
}

extension VehicleFolder {
  /// The keys of a tag: new ones at the first time, and the same ever after, so that a tag that was set up in part can be
  /// completed. The controller knows them from its next start on.
  ///
  /// - Parameter isRehearsal: whether new ones are not kept.
  /// - Throws: also when the tag is another step's, and so has that step's name in it.
  package func dynamicTagSecrets(
    for uid: TagUID, on step: StepID, isRehearsal: Bool = false
  ) throws -> DynamicTagSecrets {
    let controller = path(VehiclePaths.controller)
    // A vehicle file alone, as riders have it, is no place for keys.
    guard Files.exists(controller) else { throw SystemError("open", controller, code: ENOENT) }
    let known = try tagKeys().tags.first { $0.uid == uid }
    if let known, known.step != step {
      throw ProvisioningError.tagOfAnotherStep(uid, known.step, self.path(VehiclePaths.tagKeys))
    }
    let areTaken = Files.exists(self.path(VehiclePaths.masterKey(of: uid)))
    let master = try masterKey(of: uid, areTaken, isRehearsal: isRehearsal)
    let keys = known?.keys ?? DynamicTag.Keys(metaRead: Self.newKey(), fileRead: Self.newKey())!
    if !isRehearsal { try add(TagKeyFile.Tag(uid: uid, step: step, keys: keys)) }
    return DynamicTagSecrets(master: master, verifying: keys, areTaken: areTaken)
  }

  /// Notes that the tag has all of its keys: no other is to get them.
  package func noteTaken(by uid: TagUID) throws {
    let (new, path) = (path(VehiclePaths.newMasterKey(of: uid)), path(VehiclePaths.masterKey(of: uid)))
    guard Files.exists(new) else { return }
    _ = try check("rename", new) { rename(new, path) }
    try StagingFolder.synchronize(Files.parent(of: path))
  }

  private func masterKey(
    of uid: TagUID, _ isTaken: Bool, isRehearsal: Bool
  ) throws -> [UInt8] {
    let path = path(isTaken ? VehiclePaths.masterKey(of: uid) : VehiclePaths.newMasterKey(of: uid))
    if Files.exists(path) {
      try KeyFile.checkPrivate(path)
      let text = try Files.read(path, limit: 64)
      let digits = String(decoding: text, as: UTF8.self).prefix { $0 != "\n" }
      guard let key = hexadecimal(digits), key.count == DynamicTag.Keys.size else {
        throw ConfigurationError(path, "expected \(2 * DynamicTag.Keys.size) hexadecimal digits")
      }
      return key
    }
    let key = Self.newKey()
    if isRehearsal { return key }
    try Files.createFolder(Files.parent(of: path), mode: 0o700)
    try Files.replace(path, with: "\(hexadecimal(key))\n".utf8, mode: 0o600)
    return key
  }

  private static func newKey() -> [UInt8] { randomBytes(DynamicTag.Keys.size) }
}

extension VehicleFolder {
  /// Lets the controller verify a dynamic tag from its next start on; one of the same UID is replaced. Others may be
  /// adding theirs at the same time.
  package func add(_ tag: TagKeyFile.Tag) throws {
    try checkFinished()
    let vehicle = try readVehicleFile().vehicle
    guard vehicle.step(tag.step) != nil else {
      throw ProvisioningError.noSuchStep(tag.step, known: vehicle.steps.map(\.id))
    }
    let path = path(VehiclePaths.tagKeys)
    // The folder is locked, because the file is replaced.
    let folder = Files.parent(of: path)
    let lock = try Descriptor.open(folder, O_RDONLY | O_DIRECTORY)
    let number = lock.number
    _ = try check("lock", folder) { flock(number, LOCK_EX) }
    defer { withExtendedLifetime(lock) {} }
    var file = try tagKeys()
    file.set(tag)
    guard file.tags.count <= TagKeyFile.maximumCount else { throw ProvisioningError.tooManyTags(path) }
    try Files.replace(path, with: file.render().utf8, mode: 0o600)
  }

  /// The dynamic tags' keys, none before the first. A file that cannot be read is not taken for that: it would be
  /// replaced, and the keys in it lost.
  func tagKeys() throws -> TagKeyFile {
    let path = path(VehiclePaths.tagKeys)
    do { return try TagKeyFile(reading: path) } catch let error as SystemError where error.code == ENOENT {
      return TagKeyFile(path: path)
    }
  }
}
