import Bluetooth
import Domain
import Encoding
import FileFormats
import Glibc
import Operator
import StepController
import StepProtocol
import StepdConfiguration
import SystemIO
import TestSupport
import Testing

@Suite("Identifiers that cannot be copied") struct IdentifierTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func tag(_ uid: String, _ step: StepID = .left, key: UInt8 = 1) -> TagKeyFile.Tag {
    let key = [UInt8](repeating: key, count: DynamicTag.Keys.size)
    return .init(uid: TagUID(uid)!, step: step, keys: DynamicTag.Keys(metaRead: key, fileRead: key)!)
  }

  @Test("the vehicle file and each rider's copy name the operator's key, which codes are signed with")
  func operatorKey() throws {
    let vehicle = try folder.vehicle()
    _ = try vehicle.provisionToken(.sample(), now: now, force: false)
    let key = try KeyFile.signingKey("\(vehicle.path)/operator/token.jwk").verificationKey
    for file in ["vehicle.toml", "riders/ann/vehicle.toml"] {
      #expect(try VehicleFile(reading: "\(vehicle.path)/\(file)").operatorKey == key)
    }
  }

  @Test("a vehicle with a radio has a secret of its own for each step, and a controller that reads them")
  func beacons() throws {
    var plan = try VehiclePlan.sample()
    plan.beaconRadios = [.left: .hci(0), .right: .hci(0)]
    let vehicle = try folder.vehicle(plan)
    let setup = try ControllerSetup(reading: "\(vehicle.path)/stepd.toml")
    #expect(setup.beaconRadios == plan.beaconRadios && setup.secrets.minors.count == 2)
    let file = try ControllerFile(reading: "\(vehicle.path)/stepd.toml")
    #expect(file.beaconPeriod == 8)
    var texts: Set<String> = []
    for step in [StepID.left, .right] {
      let beacon = try #require(file.beacons[step])
      #expect(beacon == .init(secret: "\(vehicle.path)/keys/\(step).beacon", radio: .hci(0)))
      texts.insert(try KeyFile.beaconSecret(beacon.secret).jwk.text)
      #expect(try !Files.isReadableByOthers(beacon.secret))
    }
    #expect(texts.count == 2)
  }

  @Test("tags that are added at the same time are all there")
  func tagsAtOnce() async throws {
    let vehicle = try folder.vehicle()
    let tags = (0..<32).map { tag("04A1B2C3D4E5" + hexadecimal([$0])) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for tag in tags { group.addTask { try vehicle.add(tag) } }
      try await group.waitForAll()
    }
    let added = try ControllerSetup(reading: "\(vehicle.path)/stepd.toml").secrets.tags
    #expect(Set(added.keys) == Set(tags.map(\.uid)))
  }

  @Test("keys that cannot be read are not replaced")
  func unreadableKeys() throws {
    let vehicle = try folder.vehicle()
    let file = "\(vehicle.path)/keys/tags.json"
    #expect(unlink(file) == 0 && symlink("tags.json", file) == 0)
    #expect(throws: SystemError("open", file, code: ELOOP)) { try vehicle.add(tag("04A1B2C3D4E5F6")) }
    var status = stat()
    #expect(lstat(file, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK, "it is the same still")
  }

  @Test("tags are added for the controller to verify, and one that is written again takes its own place")
  func tags() throws {
    let vehicle = try folder.vehicle()
    let file = "\(vehicle.path)/keys/tags.json"
    #expect(try ControllerSetup(reading: "\(vehicle.path)/stepd.toml").secrets.tags.isEmpty)
    try vehicle.add(tag("04A1B2C3D4E5F6"))
    try vehicle.add(tag("04A1B2C3D4E5F7", .right))
    try vehicle.add(tag("04A1B2C3D4E5F6", .right, key: 2))
    #expect(
      try TagKeyFile(reading: file).tags
        == [tag("04A1B2C3D4E5F7", .right), tag("04A1B2C3D4E5F6", .right, key: 2)])
    #expect(try !Files.isReadableByOthers(file))
    // A vehicle that was made before there were tags.
    try Files.replace(file, with: [], mode: 0o600)
    #expect(throws: ConfigurationError(file, "not JSON at byte 0: expected a value")) {
      try vehicle.add(tag("04A1B2C3"))
    }
  }

  @Test("a tag of a step that the vehicle has not is refused, and so is one too many")
  func refused() throws {
    let vehicle = try folder.vehicle()
    let roof = StepID("roof")!
    #expect(throws: ProvisioningError.noSuchStep(roof, known: [.left, .right])) {
      try vehicle.add(tag("04A1B2C3", roof))
    }
    var file = TagKeyFile(path: "\(vehicle.path)/keys/tags.json")
    for index in 0..<TagKeyFile.maximumCount { file.set(tag("04A1B2C3D4" + hexadecimal([0, UInt8(index)]))) }
    try Files.replace(file.path, with: file.render().utf8, mode: 0o600)
    try vehicle.add(tag("04A1B2C3D40001"))
    #expect(throws: ProvisioningError.tooManyTags(file.path)) { try vehicle.add(tag("04A1B2C3D4FFFF")) }
  }
}
