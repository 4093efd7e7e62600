import Access
import Certificates
import Domain
import Glibc
import StepProtocol
import SystemIO
import TestSupport
import Testing

@testable import Operator

@Suite("The operator of a fleet's server") struct FleetOperatorTests {
  let folder: TemporaryFolder
  let fleet: FleetOperator
  let vehicle: Vehicle
  let port: UInt16

  init() throws {
    folder = try TemporaryFolder()
    vehicle = try Vehicle.sample()
    port = try Port.unused()
    fleet = try FleetOperator.create("\(folder.path)/operator", host: "localhost", port: port, now: now)
    try admit(vehicle, "a/b")
  }

  func admit(_ vehicle: Vehicle, _ topic: String) throws {
    _ = try fleet.admit(
      .init(
        vehicle: vehicle, topic: TopicPrefix(topic)!, encryptionKey: DecryptionKey().encryptionKey,
        statementKey: SigningKey().verificationKey, certificateRequest: Self.request("controller")), now: now)
  }

  static func request(_ name: String) throws -> [UInt8] { try CertificateRequest(for: PrivateKey(), name: name).der() }

  func grant(to device: SigningKey, now: Int64 = now) throws -> String {
    let text = DeviceRequest.signed(
      name: "anna", certificateRequest: try Self.request("rider"), issued: now, by: device)
    return try #require(
      try fleet.grant(
        vehicle.uuid.description, subject: "b-1", steps: [.left], validity: now..<now + hour,
        to: DeviceRequest(verifying: text), now: now)
    ).token.id
  }

  @Test("hands out no more than one notice can take back")
  func revocable() throws {
    var tokens: [String] = []
    for _ in 0..<4 {
      let device = SigningKey()
      for _ in 0..<16 { tokens.append(try grant(to: device)) }
      #expect(throws: FleetOperator.Refusal.tooMany(until: now + hour)) { try grant(to: device) }
    }
    #expect(throws: FleetOperator.Refusal.tooMany(until: now + hour)) { try grant(to: SigningKey()) }
    #expect(try fleet.revoke(tokens.map { .token($0) }, now: now).count == 64)
    // Those that were revoked count, too: whoever books, cancels and books again gets no further.
    #expect(throws: FleetOperator.Refusal.tooMany(until: now + hour)) { try grant(to: SigningKey()) }
    let letter = try OperatorPlace("\(folder.path)/operator").letters(now: now)[0]
    #expect(letter.revocations == 64)
    // Two more keys and the last event take less than 500 bytes.
    #expect(letter.text.utf8.count + 500 <= Notice.maximumSize)
    _ = try grant(to: SigningKey(), now: now + hour)
  }

  @Test("a list for the broker that could not be written is written when it is tried again")
  func listAgain() throws {
    let token = try grant(to: SigningKey())
    let list = "\(folder.path)/operator/\(VehiclePaths.revocationList)"
    unlink(list)
    mkdir(list, 0o755)
    #expect(throws: (any Error).self) { try fleet.revoke([.token(token)], now: now) }
    rmdir(list)
    #expect(try fleet.revoke([.token(token)], now: now) == [token])
    #expect(access(list, F_OK) == 0)
  }

  @Test("a vehicle that the broker does not know yet keeps no other one from its notice")
  func untold() throws {
    chmod(folder.path, 0o755)
    let broker = try Mosquitto(configuration: "\(folder.path)/operator/mosquitto.conf", port: port)
    defer { withExtendedLifetime(broker) {} }
    // The broker has read its access list before.
    let late = try Vehicle(name: "Late", uuid: .random(), steps: vehicle.steps)
    try admit(late, "a/c")
    for _ in 0..<3 {
      let untold = try fleet.publish(
        to: [vehicle.uuid, late.uuid], now: now, patience: .seconds(1), until: .now + .seconds(30))
      #expect(Set(untold.keys) == [late.uuid])
    }
  }

  @Test("the old key does not go before every vehicle that was there has told that it has the new one")
  func retiring() throws {
    for _ in 0..<2 { _ = try fleet.rotateKeys(now: now) }
    // It was installed with the new one.
    try admit(try Vehicle(name: "Late", uuid: .random(), steps: vehicle.steps), "a/c")
    #expect(throws: LedgerError.notTold([vehicle.name], "\(folder.path)/operator")) { try fleet.retireKey(now: now) }
    #expect(try fleet.keys().count == 2)
    // There is no broker: nothing waits for it, and whoever wants access meanwhile gets it.
    let event = VehicleEvent(
      vehicle: vehicle.uuid, sequence: 1, previous: .random(), .init(.notice, time: now, notice: now + 1000))
    let archive = OperatorPlace("\(folder.path)/operator").archive(of: vehicle.uuid)
    let text = Array(event.signed(by: SigningKey()).utf8)
    try archive.writer().append([.init(event: event, digest: EventDigest(of: text), text: text)])
    try fleet.retireKey(now: now)
    #expect(try fleet.keys().count == 1)
  }
}
