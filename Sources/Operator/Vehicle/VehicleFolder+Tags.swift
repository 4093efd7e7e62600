import Cryptography
package import Domain
import Encoding
import FileFormats
import Glibc
package import StepProtocol
package import StepdConfiguration
import SystemIO

/// The keys of a dynamic tag.
package struct DynamicTagSecrets: Sendable {
  /// The tag's key 0, which may change all others. The vehicle does not need it.
  package let master: [UInt8]
  /// The keys with which the controller verifies the tag's messages.
  package let verifying: DynamicTag.Keys
  /// Whether a tag already has all of these keys. Then another tag with this UID and the factory's keys may be a copy,
  /// and must not get these keys.
  package let areTaken: Bool
}

extension VehicleFolder {
  /// The keys of a tag: new at first, later the same, so that an interrupted setup can be completed. The controller
  /// knows them from its next start on.
  ///
  /// - Parameter isRehearsal: whether not to store new keys.
  /// - Throws: also if the tag belongs to another step, because the tag carries that step's name.
  package func dynamicTagSecrets(
    for uid: TagUID, on step: StepID, isRehearsal: Bool = false
  ) throws -> DynamicTagSecrets {
    let controller = path(VehiclePaths.controller)
    // A rider has only a vehicle file, so no keys are stored there.
    guard Files.exists(controller) else { throw SystemError("open", controller, code: ENOENT) }
    let known = try tagKeys().tags.first { $0.uid == uid }
    if let known, known.step != step {
      throw ProvisioningError.tagOfAnotherStep(uid, known.step, self.path(VehiclePaths.tagKeys))
    }
    let areTaken = Files.exists(self.path(VehiclePaths.masterKey(of: uid)))
    let master = try masterKey(of: uid, areTaken, isRehearsal: isRehearsal)
    // New keys have the required length.
    let keys = known?.keys ?? DynamicTag.Keys(metaRead: Self.newKey(), fileRead: Self.newKey())!
    if !isRehearsal { try add(TagKeyFile.Tag(uid: uid, step: step, keys: keys)) }
    return DynamicTagSecrets(master: master, verifying: keys, areTaken: areTaken)
  }

  /// Notes that the tag has all of its keys: from now on no other tag gets them.
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
      let text = try Files.readRegular(path, limit: 64)
      let digits = String(decoding: text, as: UTF8.self).prefix { $0 != "\n" }
      guard let key = hexadecimal(digits), key.count == DynamicTag.Keys.size else {
        throw ConfigurationError(path, "expected \(2 * DynamicTag.Keys.size) hexadecimal digits")
      }
      return key
    }
    let key = Self.newKey()
    if isRehearsal { return key }
    try Files.createFolder(Files.parent(of: path), mode: 0o700)
    try Files.replaceForOwner(path, with: "\(hexadecimal(key))\n".utf8, mode: 0o600)
    return key
  }

  private static func newKey() -> [UInt8] { randomBytes(DynamicTag.Keys.size) }
}

extension OperatorPlace {
  /// A tag of a step.
  package struct Tag: Sendable {
    package let uid: TagUID
    package let vehicle: Vehicle
    package let step: StepID
    package let isDynamic: Bool
  }

  /// The tags that the vehicles know, dynamic ones last.
  package func tags() throws -> [Tag] {
    try vehicles().flatMap { folder in
      let vehicle = try folder.readVehicleFile().vehicle
      let dynamic = try folder.tagKeys().tags.map {
        Tag(uid: $0.uid, vehicle: vehicle, step: $0.step, isDynamic: true)
      }
      let plain = vehicle.steps.flatMap { step in
        step.tags.map { Tag(uid: $0, vehicle: vehicle, step: step.id, isDynamic: false) }
      }
      return plain.filter { tag in !dynamic.contains { $0.uid == tag.uid } } + dynamic
    }
  }
}

extension VehicleFolder {
  /// Lets the controller verify a dynamic tag from its next start on. Replaces a tag of the same UID. Several processes
  /// may add tags at the same time.
  package func add(_ tag: TagKeyFile.Tag) throws {
    try checkFinished()
    let vehicle = try readVehicleFile().vehicle
    guard vehicle.step(tag.step) != nil else {
      throw ProvisioningError.noSuchStep(tag.step, known: vehicle.steps.map(\.id))
    }
    let path = path(VehiclePaths.tagKeys)
    // Locks the folder, because the file is replaced.
    let folder = Files.parent(of: path)
    let lock = try Descriptor.open(folder, O_RDONLY | O_DIRECTORY)
    let number = lock.number
    _ = try check("lock", folder) { flock(number, LOCK_EX) }
    defer { withExtendedLifetime(lock) {} }
    var file = try tagKeys()
    file.set(tag)
    guard file.tags.count <= TagKeyFile.maximumCount else { throw ProvisioningError.tooManyTags(path) }
    try Files.replaceForOwner(path, with: file.render().utf8, mode: 0o600)
  }

  /// The dynamic tags' keys; empty if there is no file. An unreadable file is an error: if it counted as empty, it
  /// would be replaced, and its keys would be lost.
  func tagKeys() throws -> TagKeyFile {
    let path = path(VehiclePaths.tagKeys)
    do { return try TagKeyFile(reading: path) } catch let error as SystemError where error.code == ENOENT {
      return TagKeyFile(path: path)
    }
  }
}
