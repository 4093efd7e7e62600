import Domain
import FileFormats
import Glibc
import MQTT
import Operator
import StepController
import StepProtocol
import StepdConfiguration
import SystemIO
import TestSupport
import Testing

@Suite("Provisioning a vehicle") struct VehicleProvisioningTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  static let listing = [
    "broker.json 644", "data 700", "keys 700", "keys/encryption.jwk 600", "keys/signing.jwk 600", "keys/tags.json 600",
    "mosquitto-limits.conf 644", "mosquitto.acl 644", "mosquitto.conf 644", "mosquitto.nft 644", "operator 700",
    "operator/ca.key 600", "operator/client.key 600", "operator/client.pem 644", "operator/ledger.json 600",
    "operator/token.jwk 600", "stepd.toml 644", "tls 755", "tls/610f5bc7.r0 644",
    "tls/broker.key 600", "tls/broker.pem 644", "tls/ca.pem 644", "tls/controller.key 600",
    "tls/controller.pem 644", "tls/crl.pem 644", "vehicle.toml 644",
  ]

  @Test("writes these files, of which only their owner can read the private ones, and says so")
  func files() throws {
    let vehicle = VehicleFolder("\(folder.path)/new/vehicle/")
    let summary = try vehicle.provisionVehicle(.sample(), now: now, force: false)
    #expect(try folder.listing("new/vehicle") == Self.listing)
    let names = Self.listing.filter { $0.contains(".") }.map { String($0.split(separator: " ")[0]) }
    #expect(summary.files.sorted() == names)
  }

  @Test("writes what the controller can run from")
  func controller() throws {
    let plan = try VehiclePlan.sample()
    let vehicle = try folder.vehicle(plan, at: BrokerAddress(host: BrokerHost("vehicle.example")!, port: 18883))
    let setup = try ControllerSetup(reading: "\(vehicle.path)/stepd.toml")
    #expect(setup.vehicle == plan.vehicle)
    #expect(setup.topic == plan.topic)
    let tls = "\(vehicle.path)/tls"
    let identity = Broker.Identity(certificate: "\(tls)/controller.pem", key: "\(tls)/controller.key")
    #expect(
      setup.broker
        == Broker(host: "vehicle.example", port: 18883, tls: .init(authority: "\(tls)/ca.pem", identity: identity)))
    #expect(setup.file.servo == .simulated(log: "\(vehicle.path)/servo.jsonl"))
    #expect(setup.file.journal == "\(vehicle.path)/journal.json")
  }

  @Test("gives servos the PWM channels in the order of the steps")
  func servos() throws {
    let vehicle = try folder.vehicle(.sample(servo: .pwm))
    guard case .pwm(let pwm) = try ControllerSetup(reading: "\(vehicle.path)/stepd.toml").file.servo else {
      Issue.record("not PWM")
      return
    }
    #expect(pwm.channels == [.left: .init(chip: .number(0), channel: 0), .right: .init(chip: .number(0), channel: 1)])
    let text = String(decoding: try Files.read("\(vehicle.path)/stepd.toml"), as: UTF8.self)
    #expect(text.contains("write the name of the chip's device, see stepd-servo(7).\nchip = 0\nchannel = 0\n"))
  }

  @Test("publishes the public parts of the private keys that it wrote, and says their thumbprints")
  func keys() throws {
    let folder = VehicleFolder("\(folder.path)/vehicle")
    let summary = try folder.provisionVehicle(.sample(), now: now, force: false)
    let setup = try ControllerSetup(reading: "\(folder.path)/stepd.toml")
    let file = try VehicleFile(reading: "\(folder.path)/vehicle.toml")
    let (encryption, signing) = (setup.keys.decryption, setup.keys.signing.verificationKey)
    let token = try KeyFile.signingKey("\(folder.path)/operator/token.jwk").verificationKey
    #expect(file.controller == .init(encryption: encryption.encryptionKey, signing: signing))
    #expect(setup.keys.operatorKey == token)
    #expect(summary.tokenKey == token.thumbprint)
    #expect(summary.encryptionKey == encryption.thumbprint)
    #expect(summary.signingKey == signing.thumbprint)
    #expect(summary.certificatesEnd == now + 825 * day)
    #expect(Set([summary.tokenKey, summary.encryptionKey, summary.signingKey]).count == 3)
  }

  @Test("makes other keys for every vehicle")
  func newKeys() throws {
    let a = try VehicleFolder("\(folder.path)/a").provisionVehicle(.sample(), now: now, force: false)
    let b = try VehicleFolder("\(folder.path)/b").provisionVehicle(.sample(), now: now, force: false)
    #expect(
      Set([a, b].flatMap { [$0.tokenKey, $0.encryptionKey, $0.signingKey] }).count == 6)
  }

  @Test("works in the working folder, and in one that is there and holds other things")
  func existingFolder() throws {
    try Files.create("\(folder.path)/notes", with: [], mode: 0o600)
    _ = try VehicleFolder(folder.path).provisionVehicle(.sample(), now: now, force: false)
    #expect(try folder.listing().contains("notes 600"))
    #expect(try folder.listing().contains("mosquitto.conf 644"))
  }

  @Test(
    "replaces nothing, and says what is in the way",
    arguments: [
      "stepd.toml", "mosquitto.conf", "mosquitto.acl", "broker.json", "data", "tls", "keys", "operator",
      "riders",
    ])
  func inTheWay(name: String) throws {
    try Files.create("\(folder.path)/\(name)", with: "mine".utf8, mode: 0o640)
    #expect(throws: ProvisioningError.inTheWay("\(folder.path)/\(name)")) {
      try VehicleFolder(folder.path).provisionVehicle(.sample(), now: now, force: false)
    }
    #expect(try folder.listing() == ["\(name) 640"])
    #expect(try TemporaryFolder.text("\(folder.path)/\(name)") == "mine")
  }

  @Test("replaces no vehicle, even one whose file nobody can read, and no operator of several at all")
  func exists() throws {
    let place = VehicleFolder(folder.path)
    try Files.create("\(folder.path)/vehicle.toml", with: "mine".utf8, mode: 0o640)
    #expect(throws: ProvisioningError.vehicleExists(folder.path)) {
      try place.provisionVehicle(.sample(), now: now, force: false)
    }
    let fleet = OperatorPlace("\(folder.path)/fleet")
    _ = try fleet.initialize(at: .sample, now: now)
    let before = try folder.listing("fleet")
    for force in [false, true] {
      #expect(throws: ProvisioningError.operatorExists(fleet.path)) {
        try VehicleFolder(fleet.path).provisionVehicle(.sample(), now: now, force: force)
      }
    }
    #expect(throws: ProvisioningError.operatorExists(fleet.path)) { try VehicleFolder(fleet.path).loss(now: now) }
    #expect(try folder.listing("fleet") == before)
  }

  @Test("says what would be lost, also where nobody can read the vehicle's file")
  func loss() throws {
    #expect(try VehicleFolder("\(folder.path)/none").loss(now: now) == nil)
    let vehicle = try folder.vehicle()
    _ = try vehicle.provisionToken(.sample(), now: now, force: false)
    for (content, name) in [(nil, "Rolling Chassis"), ("rubbish", nil)] as [(String?, String?)] {
      if let content { try Files.replace(vehicle.path("vehicle.toml"), with: content.utf8, mode: 0o644) }
      let loss = try #require(try vehicle.loss(now: now))
      #expect(loss.name == name && loss.tokens?.riders == ["ann"] && loss.tokens?.count == 1 && loss.tags == 0)
    }
    #expect(unlink(vehicle.path("vehicle.toml")) == 0)
    #expect(try vehicle.loss(now: now)?.tokens?.count == 1)
    try Files.replace(vehicle.path("operator/ledger.json"), with: "rubbish".utf8, mode: 0o600)
    let unknown = try #require(try vehicle.loss(now: now))
    #expect(unknown.tokens == nil, "unknown is not none")
  }

  @Test("that fails in the middle leaves what was there before: nothing", arguments: ["tls", "keys", "operator"])
  func nothingBehind(name: String) throws {
    // A folder cannot take the place of a link.
    let link = "\(folder.path)/\(name)"
    symlink("nowhere", link)
    #expect(throws: SystemError("create", link, code: ENOTDIR)) {
      try VehicleFolder(folder.path).provisionVehicle(.sample(), now: now, force: false)
    }
    #expect(try Files.names(in: folder.path) == [name])
  }

  @Test("that fails in the middle leaves what was there before: another vehicle")
  func anotherVehicleBehind() throws {
    let vehicle = try folder.vehicle()
    let keys = "\(vehicle.path)/keys"
    _ = try check("rename") { rename(keys, "\(folder.path)/keys") }
    symlink("nowhere", keys)
    let before = try Files.names(in: vehicle.path).sorted()
    let file = try TemporaryFolder.text("\(vehicle.path)/vehicle.toml")
    #expect(throws: SystemError("create", keys, code: ENOTDIR)) {
      try vehicle.provisionVehicle(.sample("Another"), now: now, force: true)
    }
    #expect(try Files.names(in: vehicle.path).sorted() == before)
    #expect(try TemporaryFolder.text("\(vehicle.path)/vehicle.toml") == file)
  }

  @Test("that fails leaves no folder that it made")
  func noFolderBehind() throws {
    #expect(throws: ProvisioningError.unusablePath) {
      try VehicleFolder("\(folder.path)/a/b\u{1}/c").provisionVehicle(.sample(), now: now, force: false)
    }
    #expect(try Files.names(in: folder.path).isEmpty)
  }

  @Test("replaces a vehicle and its riders when it is forced to, and nothing else")
  func force() throws {
    let vehicle = try folder.vehicle()
    _ = try vehicle.provisionToken(.sample(), now: now, force: false)
    try Files.create("\(vehicle.path)/journal.json", with: "journal".utf8, mode: 0o600)
    try Files.create("\(vehicle.path)/tls/old.pem", with: [], mode: 0o600)
    let before = try KeyFile.signingKey("\(vehicle.path)/operator/token.jwk").verificationKey
    let summary = try vehicle.provisionVehicle(.sample("Another"), now: now, force: true)
    let listing = try folder.listing("vehicle")
    // What was there is kept; a name in a folder of its own begins with the folder's.
    let kept = listing.filter { $0.hasPrefix("replaced-\(now)") }
    #expect(kept.first == "replaced-\(now) 700")
    #expect(kept.contains("replaced-\(now)/operator/token.jwk 600") && kept.contains { $0.contains("/riders/ann/") })
    // The broker's list of what is revoked is named after the authority, which has the vehicle's name.
    let others = ["journal.json 600", "tls/bc2e5524.r0 644"] + Self.listing.filter { !$0.hasSuffix(".r0 644") }
    #expect(listing.filter { !kept.contains($0) } == others.sorted())
    #expect(summary.tokenKey != before.thumbprint)
    #expect(try VehicleFile(reading: "\(vehicle.path)/vehicle.toml").vehicle.name == "Another")
  }

  @Test("can be forced where nothing is")
  func forceNew() throws {
    _ = try VehicleFolder("\(folder.path)/vehicle").provisionVehicle(.sample(), now: now, force: true)
    #expect(try folder.listing("vehicle") == Self.listing)
  }

  @Test("after a run that was interrupted, does nothing until it is forced, and then all")
  func interrupted() throws {
    let vehicle = try folder.vehicle()
    let mark = "\(vehicle.path)/.provisioning"
    try Files.createFolder("\(mark)/replaced/keys", mode: 0o700)
    let unfinished = ProvisioningError.unfinished(mark)
    #expect(throws: unfinished) { try vehicle.provisionVehicle(.sample(), now: now, force: false) }
    #expect(throws: unfinished) { try vehicle.provisionToken(.sample(), now: now, force: false) }
    #expect(throws: unfinished) { try vehicle.relocate() }
    #expect(throws: unfinished) { try vehicle.renewCertificates(now: now) }
    _ = try vehicle.provisionVehicle(.sample(), now: now, force: true)
    // Once what that run had taken away, and once what stood there.
    let listing = try folder.listing("vehicle")
    #expect(listing.contains("replaced-\(now)/keys 700") && listing.contains("replaced-\(now)-2/keys 700"))
    #expect(listing.filter { !$0.hasPrefix("replaced-") } == Self.listing)
  }

  @Test(
    "leaves nothing behind, or all as it was, when the disk is full",
    .enabled(if: FullDisk.canBeMounted, "needs root, to mount a small file system"))
  func diskFull() throws {
    let disk = try FullDisk(in: folder)
    // A file system of 40 KiB: some of the files fit, and not all.
    let vehicle = VehicleFolder("\(disk.path)/vehicle")
    #expect {
      try vehicle.provisionVehicle(.sample(), now: now, force: false)
    } throws: {
      ($0 as? SystemError)?.code == ENOSPC
    }
    #expect(try folder.listing() == ["disk 755"])

    try disk.enlarge()
    _ = try vehicle.provisionVehicle(.sample(), now: now, force: false)
    try disk.fill()
    let before = try Self.contents(vehicle)
    #expect(throws: SystemError.self) { try vehicle.provisionVehicle(.sample(), now: now, force: true) }
    #expect(try Self.contents(vehicle) == before)
    #expect(!Files.exists("\(vehicle.path)/.provisioning"))
    #expect(throws: SystemError.self) { try vehicle.provisionToken(.sample(), now: now, force: false) }
    #expect(try folder.listing("disk/vehicle").filter { $0.contains("ann") } == [])
    let part = "\(disk.path)/part"
    #expect(throws: SystemError("write", part, code: ENOSPC)) { try Files.create(part, with: [1], mode: 0o600) }
    #expect(!Files.exists(part))

    // What an interrupted run left is not forgotten because the next one fails.
    try Files.createFolder("\(vehicle.path)/.provisioning", mode: 0o700)
    #expect(throws: SystemError.self) { try vehicle.provisionVehicle(.sample(), now: now, force: true) }
    #expect(Files.exists("\(vehicle.path)/.provisioning"))
  }

  private static func contents(_ vehicle: VehicleFolder) throws -> [[UInt8]] {
    try listing.filter { $0.contains(".") }.map { try Files.read("\(vehicle.path)/\($0.split(separator: " ")[0])") }
  }

  @Test(
    "refuses names that no file can have",
    arguments: ["", "a\nb", "a\u{1B}[2J", "\u{85}", String(repeating: "x", count: 129)])
  func names(name: String) throws {
    #expect(throws: ProvisioningError.unusableName) {
      try VehicleFolder("\(folder.path)/vehicle").provisionVehicle(.sample(name), now: now, force: false)
    }
    #expect(try folder.listing() == [])
  }

  @Test("refuses folders that mosquitto could not be told of", arguments: ["a\nlistener 1883", "a\u{7F}", "a\u{FFFE}"])
  func paths(name: String) throws {
    #expect(throws: ProvisioningError.unusablePath) {
      try VehicleFolder("\(folder.path)/\(name)").provisionVehicle(.sample(), now: now, force: false)
    }
    #expect(try folder.listing() == [])
  }

  @Test("says which file cannot be made")
  func errors() throws {
    try Files.create("\(folder.path)/file", with: [], mode: 0o600)
    let expected = SystemError("create the folder", "\(folder.path)/file/.provisioning", code: ENOTDIR)
    #expect(throws: expected) {
      try VehicleFolder("\(folder.path)/file").provisionVehicle(.sample(), now: now, force: false)
    }
  }

  @Test("writes absolute paths into mosquitto.conf, whatever the folder was called")
  func absolutePaths() throws {
    _ = try folder.vehicle()
    try VehicleFolder("\(folder.path)/../\(folder.path.dropFirst("/tmp/".count))/./vehicle").relocate()
    let text = try TemporaryFolder.text("\(folder.path)/vehicle/mosquitto.conf")
    #expect(text.contains("\ncafile \(folder.path)/vehicle/tls/ca.pem\n"))
  }

  @Test("will not update, or renew, what somebody has broken")
  func broken() throws {
    let vehicle = try folder.vehicle()
    let path = "\(vehicle.path)/vehicle.toml"
    let text = try TemporaryFolder.text(path)
    let wrong = text.replacing(#"host = "localhost""#, with: #"host = "local host""#)
    try Files.replace(path, with: wrong.utf8, mode: 0o644)
    #expect {
      try vehicle.update(now: now)
    } throws: {
      "\($0)" == "\(path):11: [broker] host: expected a host name or an address, found \"local host\""
    }

    try Files.replace(path, with: text.utf8, mode: 0o644)
    let key = "\(vehicle.path)/operator/ca.key"
    try Files.replace(key, with: try Files.read("\(vehicle.path)/tls/broker.key"), mode: 0o600)
    #expect {
      try vehicle.renewCertificates(now: now)
    } throws: {
      "\($0)" == "\(key): cannot issue certificates: the key does not belong to the certificate"
    }
    try Files.replace(key, with: "rubbish".utf8, mode: 0o600)
    #expect {
      try vehicle.renewCertificates(now: now)
    } throws: {
      "\($0)"
        == "\(key): cannot read the private key: it is damaged, not a private key in PEM, or protected by a passphrase"
    }
    chmod(key, 0o640)
    #expect(
      throws: ConfigurationError(key, "can be read by others: chmod 600 \(key)", kind: .permission)
    ) { try vehicle.renewCertificates(now: now) }
  }
}
