import Domain
import Encoding
import FileFormats
import Glibc
import MQTT
import Operator
import Rider
import StepProtocol
import SystemIO
import TestSupport
import Testing

@Suite("Provisioning a token") struct TokenProvisioningTests {
  let folder: TemporaryFolder
  let vehicle: VehicleFolder
  let ann: String

  init() throws {
    folder = try TemporaryFolder()
    vehicle = try folder.vehicle()
    ann = "\(vehicle.path)/riders/ann"
  }

  @discardableResult
  func provision(_ plan: TokenPlan = .sample(), now: Int64 = now, force: Bool = false) throws -> TokenSummary {
    try vehicle.provisionToken(plan, now: now, force: force)
  }

  func operatorKey() throws -> VerificationKey {
    try KeyFile.signingKey("\(vehicle.path)/operator/token.jwk").verificationKey
  }

  @Test("writes these files, of which only their owner can read the private ones, and says so")
  func files() throws {
    let summary = try provision()
    let names = [
      "ca.pem 644", "device.jwk 600", "rider.key 600", "rider.pem 644", "token.jwt 600", "vehicle.toml 644",
    ]
    #expect(try folder.listing("vehicle/riders") == ["ann 700"] + names.map { "ann/\($0)" })
    #expect(summary.files.sorted() == names.map { "riders/ann/\($0.split(separator: " ")[0])" })
    #expect(summary.missingDeviceKey == nil)
    #expect(summary.certificateEnd == now + 365 * day)
  }

  @Test("writes what a rider's program can command from, wherever the folder is")
  func access() throws {
    try provision()
    let moved = "\(folder.path)/moved"
    _ = try check("rename") { rename(ann, moved) }
    let access = try VehicleFile(reading: "\(moved)/vehicle.toml").riderAccess()
    let whole = try VehicleFile(reading: "\(vehicle.path)/vehicle.toml")
    #expect(access.vehicle == whole.vehicle)
    #expect(access.topic == whole.topic)
    #expect(access.encryptionKey == whole.controller?.encryption && access.statementKey == whole.controller?.signing)
    let identity = Broker.Identity(certificate: "\(moved)/rider.pem", key: "\(moved)/rider.key")
    let tls = Broker.TLS(authority: "\(moved)/ca.pem", identity: identity)
    #expect(access.broker == Broker(host: "localhost", port: 8883, tls: tls))
    #expect(try Files.read(tls.authority) == Files.read("\(vehicle.path)/tls/ca.pem"))

    let token = try Token(verifying: access.tokenText, by: operatorKey())
    #expect(token.device == access.device.verificationKey && token.subject == "ann")
  }

  @Test("signs a token that says what was planned, and no more")
  func token() throws {
    var plan = TokenPlan.sample(from: now + hour, lifetime: 90)
    plan.steps = [.right]
    let summary = try provision(plan)
    let token = try Token(verifying: KeyFile.token("\(ann)/token.jwt"), by: operatorKey())
    #expect(token == summary.token)
    #expect(token.issuer == (try operatorKey().thumbprint.description))
    #expect(token.subject == "ann")
    #expect(token.vehicle == (try Vehicle.sample().uuid))
    #expect(token.steps == [.right])
    #expect(token.notBefore == now + hour)
    #expect(token.expires == now + hour + 90)
    #expect(summary.deviceKey == token.device.thumbprint)
  }

  @Test("is for all steps unless some are named, each once")
  func steps() throws {
    #expect(try provision().token.steps == [.left, .right])
    var plan = TokenPlan.sample()
    plan.steps = [.right, .left, .right]
    #expect(try provision(plan, force: true).token.steps == [.left, .right])
  }

  @Test("gives every rider other keys and a certificate of their own")
  func riders() throws {
    try provision()
    try provision(.sample(RiderName("bob")!))
    for name in ["device.jwk", "rider.key", "rider.pem", "token.jwt"] {
      #expect(try Files.read("\(ann)/\(name)") != Files.read("\(vehicle.path)/riders/bob/\(name)"), "\(name)")
    }
  }

  @Test("does not touch a rider who is known")
  func known() throws {
    try provision()
    let before = try contents()
    #expect(throws: ProvisioningError.riderExists(ann)) { try provision() }
    #expect(try contents() == before)
  }

  @Test("replaces only the token of a known rider when it is forced to")
  func renewal() throws {
    let first = try provision()
    let before = try contents()
    let second = try provision(.sample(from: now + day), force: true)
    #expect(second.files == ["riders/ann/token.jwt"])
    #expect(try contents().filter { before[$0.key] != $0.value }.map(\.key) == ["token.jwt"])
    #expect(second.token.device == first.token.device)
    #expect(second.token.id != first.token.id)
    #expect(second.certificateEnd == first.certificateEnd)
    #expect(try TemporaryFolder.mode("\(ann)/token.jwt") == 0o600)
  }

  @Test("replaces the vehicle's file as well when it names another key of the operator than signs now")
  func keyRenewal() throws {
    try provision()
    for _ in 0..<2 { _ = try OperatorPlace(vehicle.path).rotateKeys(now: now, force: true) }
    let summary = try provision(.sample(), force: true)
    #expect(summary.files == ["riders/ann/token.jwt", "riders/ann/vehicle.toml"])
    let key = try #require(try VehicleFile(reading: "\(ann)/vehicle.toml").operatorKey)
    #expect(try Token(verifying: KeyFile.token("\(ann)/token.jwt"), by: key).id == summary.token.id)
  }

  @Test("replaces the certificate as well when it would end before the token")
  func certificateRenewal() throws {
    try provision()
    let before = try contents()
    let later = now + 300 * day
    let summary = try provision(.sample(from: later, lifetime: 100 * day), now: later, force: true)
    #expect(summary.files == ["riders/ann/rider.pem", "riders/ann/token.jwt"])
    #expect(summary.certificateEnd == later + 365 * day)
    #expect(
      try contents().filter { before[$0.key] != $0.value }.map(\.key).sorted() == ["rider.pem", "token.jwt"])
  }

  @Test("makes the certificate last as long as the token")
  func longToken() throws {
    #expect(try provision(.sample(lifetime: 1000 * day)).certificateEnd == now + 1000 * day)
  }

  @Test("lets no certificate outlive the authority's, and refuses a token that would")
  func authorityEnd() throws {
    let end = now + 3650 * day
    let late = end - 10 * day
    #expect(try provision(.sample(from: late, lifetime: 10 * day), now: late).certificateEnd == end)
    #expect(throws: ProvisioningError.outlivesAuthority(end: end)) {
      try provision(.sample(RiderName("bob")!, from: late, lifetime: 10 * day + 1), now: late)
    }
    #expect(try folder.listing("vehicle/riders").filter { $0.contains("bob") } == [])
  }

  @Test("binds the token to a device's own key without seeing its private part")
  func deviceKey() throws {
    let device = SigningKey()
    var plan = TokenPlan.sample()
    plan.deviceKey = device.verificationKey
    let summary = try provision(plan)
    #expect(summary.missingDeviceKey == "riders/ann/device.jwk")
    #expect(!Files.exists("\(ann)/device.jwk"))
    #expect(summary.token.device == device.verificationKey)

    // The next token is for the same device, without its being named again.
    let renewed = try provision(force: true)
    #expect(renewed.token.device == device.verificationKey)
    #expect(renewed.missingDeviceKey == "riders/ann/device.jwk")

    // Or for another one, which the rider has now.
    let other = SigningKey()
    plan.deviceKey = other.verificationKey
    #expect(try provision(plan, force: true).token.device == other.verificationKey)

    // What the rider puts there is all that was missing.
    try Files.create("\(ann)/device.jwk", with: other.jwk.text.utf8, mode: 0o600)
    let access = try VehicleFile(reading: "\(ann)/vehicle.toml").riderAccess()
    #expect(access.device.verificationKey == other.verificationKey)
    #expect(try provision(plan, force: true).missingDeviceKey == nil)
  }

  @Test("does not bind the token to one key where the private part of another lies")
  func otherDeviceKey() throws {
    try provision()
    let before = try contents()
    var plan = TokenPlan.sample()
    plan.deviceKey = SigningKey().verificationKey
    #expect(throws: ProvisioningError.otherDevice("\(ann)/device.jwk")) { try provision(plan, force: true) }
    #expect(try contents() == before)
  }

  @Test("refuses steps that the vehicle does not have, and none")
  func noSuchStep() throws {
    var plan = TokenPlan.sample()
    plan.steps = [.left, StepID("middle")!]
    #expect(throws: ProvisioningError.noSuchStep(StepID("middle")!, known: [.left, .right])) {
      try provision(plan)
    }
    plan.steps = []
    #expect(throws: ProvisioningError.noSteps) { try provision(plan) }
    #expect(!Files.exists("\(vehicle.path)/riders"))
  }

  @Test(
    "refuses times that no token can have",
    arguments: [(now, 0), (now, -1), (-1, 60), (now, .max), (.max, .max), (253_402_300_799, 1)] as [(Int64, Int64)])
  func times(from: Int64, lifetime: Int64) throws {
    #expect(throws: ProvisioningError.unusableLifetime) {
      try provision(.sample(from: from, lifetime: lifetime))
    }
  }

  @Test("needs a vehicle")
  func noVehicle() throws {
    let path = "\(folder.path)/none"
    #expect(
      throws: SystemError("open", "\(path)/vehicle.toml", code: ENOENT)
    ) { try VehicleFolder(path).provisionToken(.sample(), now: now, force: false) }
    #expect(!Files.exists(path))
  }

  @Test("needs the operator's key, which is not on every copy of the folder")
  func noOperator() throws {
    unlink("\(vehicle.path)/operator/token.jwk")
    #expect(throws: LedgerError.noOperator(vehicle.path)) { try provision() }
  }

  @Test("clears away what an interrupted run left")
  func interrupted() throws {
    try Files.createFolder("\(vehicle.path)/riders/.ann.new/more", mode: 0o700)
    try provision()
    #expect(try folder.listing("vehicle/riders").count == 7)
  }

  /// The files of the rider `ann`.
  private func contents() throws -> [String: [UInt8]] {
    let names = try folder.listing("vehicle/riders/ann").map { String($0.split(separator: " ")[0]) }
    return try Dictionary(uniqueKeysWithValues: names.map { ($0, try Files.read("\(ann)/\($0)")) })
  }
}
