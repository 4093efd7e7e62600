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
  /// What the server knows of it.
  let record: VehicleRecord
  let port: UInt16

  init() throws {
    folder = try TemporaryFolder()
    vehicle = try Vehicle.sample()
    port = try Port.unused()
    fleet = try FleetOperator.create("\(folder.path)/operator", host: "localhost", port: port, now: now)
    record = try Self.admit(vehicle, "a/b", to: fleet)
  }

  /// What a server does with a vehicle that joins.
  @discardableResult
  static func admit(_ vehicle: Vehicle, _ topic: String, to fleet: FleetOperator) throws -> VehicleRecord {
    let enrolment = VehicleEnrolment(
      vehicle: vehicle, topic: TopicPrefix(topic)!, encryptionKey: DecryptionKey().encryptionKey,
      signingKey: SigningKey().verificationKey, certificateRequest: try request("controller"))
    let record = VehicleRecord(
      vehicle: vehicle, topic: enrolment.topic, encryptionKey: enrolment.encryptionKey,
      signingKey: enrolment.signingKey, certificate: try fleet.admit(enrolment, now: now).certificate)
    try fleet.keep([vehicle.uuid.description: record], without: [:])
    try fleet.writeAccessList(knowing: [:])
    return record
  }

  static func request(_ name: String) throws -> [UInt8] { try CertificateRequest(for: PrivateKey(), name: name).der() }

  func grant(to device: SigningKey) throws -> Ledger.Entry {
    let text = DeviceRequest.signed(
      name: "anna", certificateRequest: try Self.request("rider"), issued: now, by: device)
    return try fleet.grant(
      record, subject: "b-1", steps: [.left], validity: now..<now + hour,
      to: DeviceRequest(verifying: text), now: now
    ).entry
  }

  @Test("mosquitto's plugin is in its configuration, and its list then lacks the vehicles that the plugin knows")
  func plugin() throws {
    let operatorFolder = "\(folder.path)/operator"
    func content(_ name: String) throws -> String {
      try String(decoding: Files.readRegular("\(operatorFolder)/\(name)"), as: UTF8.self)
    }
    let usual = try Vehicle(name: "usual", uuid: .random(), steps: vehicle.steps)
    try Self.admit(usual, "vehicles/\(usual.uuid)", to: fleet)
    #expect(try fleet.brokerPlugin() == nil && !content("mosquitto.conf").contains("plugin"))
    let list = try content("mosquitto.acl")
    #expect(list.contains("user rider:\(usual.uuid)\n") && list.contains("user rider:\(vehicle.uuid)\n"))
    for path in ["plugin.so", "", "/a\nlistener 1"] {
      #expect(throws: ProvisioningError.unusablePath) { try fleet.setBrokerPlugin(path) }
    }
    try fleet.setBrokerPlugin("/usr/lib/a b.so")
    #expect(try fleet.brokerPlugin() == "/usr/lib/a b.so")
    let plugin = "\nplugin /usr/lib/a b.so\nplugin_opt_removed /"
    #expect(try content("mosquitto.conf").contains(plugin))
    // A mosquitto that was started before has no plugin.
    #expect(try content("mosquitto.acl") == list)
    try fleet.writeAccessList(knowing: [:])
    #expect(try !content("mosquitto.acl").contains("\(usual.uuid)"))
    #expect(try content("mosquitto.acl").contains("user rider:\(vehicle.uuid)\n"))
    let former = [UUID.random(), .random()]
    try fleet.writeAccessList(knowing: [:], without: [vehicle.uuid.description], former: Set(former))
    #expect(try !content("mosquitto.acl").contains("\(vehicle.uuid)"))
    #expect(try content("mosquitto.removed") == former.map { "\($0)\n" }.sorted().joined())
    try fleet.relocate(now: now)
    #expect(try content("mosquitto.conf").contains("\nplugin /usr/lib/a b.so\n"))
    try fleet.setBrokerPlugin(nil)
    #expect(try content("mosquitto.acl") == list && !content("mosquitto.conf").contains("plugin"))
    #expect(try !content("broker.json").contains("plugin"))
    // A server that was started before does not know that.
    try fleet.writeAccessList(knowing: [:], without: [usual.uuid.description])
    #expect(try content("mosquitto.acl") == list)
  }

  @Test("one notice can revoke as many tokens as a server gives out for a vehicle")
  func revocable() throws {
    // AccessRules.mostOfVehicle of the server.
    let revoked = (0..<64).map { _ in Notice.Revocation(.token(UUID.random().description), until: now + hour) }
    let text = try fleet.noticeWriter(now: now).notice(for: vehicle.uuid, number: now, revoked: revoked)
    #expect(try Notice.read(Array(text.utf8), verifiedBy: fleet.keys())?.revoked == revoked)
    // Two more keys and the last event take less than 500 bytes.
    #expect(text.utf8.count + 500 <= Notice.maximumSize)
    #expect(throws: LedgerError.self) {
      try fleet.noticeWriter(now: now).notice(for: vehicle.uuid, number: now, revoked: revoked + revoked)
    }
  }

  @Test("what a server knows is revoked, commands by hand know too, and the broker's list of certificates")
  func kept() throws {
    let (device, read) = (SigningKey(), try fleet.ledger(now: now))
    let entry = try grant(to: device)
    #expect(try fleet.ledger(now: now) == read, "it is noted nowhere")
    let known = Ledger(
      tokens: [entry], withdrawals: [.init(.device(entry.device), until: entry.expires, since: now)],
      revokedCertificates: [.init(try #require(entry.certificate), since: now)])
    let list = "\(folder.path)/operator/\(VehiclePaths.revocationList)"
    let before = try Files.readRegular(list)
    unlink(list)
    mkdir(list, 0o755)
    #expect(throws: (any Error).self) { try fleet.keep(known, inPlaceOf: read, now: now) }
    rmdir(list)
    try fleet.keep(known, inPlaceOf: read, now: now)
    #expect(try Files.readRegular(list) != before)
    let place = OperatorPlace("\(folder.path)/operator")
    #expect(try place.notices(now: now)[0].revocations == 1)
    let text = DeviceRequest.signed(
      name: "anna", certificateRequest: try Self.request("rider"), issued: now, by: device)
    #expect(throws: LedgerError.deviceRevoked(entry.device)) {
      try place.record(of: vehicle.uuid.description).grantAccess(
        TokenPlan(rider: RiderName("anna")!, notBefore: now, lifetime: hour), to: DeviceRequest(verifying: text),
        now: now)
    }
  }

  @Test("the broker returns a notice, and none of a vehicle that it does not know yet")
  func connection() throws {
    chmod(folder.path, 0o755)
    let broker = try Mosquitto(configuration: "\(folder.path)/operator/mosquitto.conf", port: port)
    defer { withExtendedLifetime(broker) {} }
    // The broker has read its access list before.
    let late = try Self.admit(Vehicle(name: "Late", uuid: .random(), steps: vehicle.steps), "a/c", to: fleet)
    let writer = try fleet.noticeWriter(now: now)
    let connection = try fleet.connect()
    defer { connection.close() }
    var texts: [String] = []
    for (number, one) in [late, record].enumerated() {
      let text = try writer.notice(for: one.vehicle.uuid, number: Int64(number), revoked: [])
      #expect(try fleet.number(ofNotice: Array(text.utf8)) == Int64(number))
      connection.subscribe(to: one.topic.notice)
      connection.publish(text, to: one.topic.notice)
      texts.append(text)
    }
    var (returned, acknowledged): ([[UInt8]], Int) = ([], 0)
    let deadline = Instant.now + .seconds(60)
    while returned.isEmpty || acknowledged < 2, .now < deadline {
      for event in try connection.wait(until: deadline).events {
        switch event {
        case .message(_, let payload): returned.append(payload)
        case .acknowledged: acknowledged += 1
        case .connected: break
        case .ended(let error): throw error
        }
      }
    }
    #expect(returned == [Array(texts[1].utf8)] && acknowledged == 2)
    connection.wake()
    #expect(try connection.wait(until: .now + .seconds(60)).isWoken)
  }

  @Test("the old key does not go before every vehicle that was there has told that it has the new one")
  func retiring() throws {
    for _ in 0..<2 { _ = try fleet.rotateKeys(above: 0, now: now) }
    // It was installed with the new one.
    try Self.admit(Vehicle(name: "Late", uuid: .random(), steps: vehicle.steps), "a/c", to: fleet)
    #expect(throws: LedgerError.notTold([vehicle.name], "\(folder.path)/operator")) {
      try fleet.retireKey(tokens: [], now: now)
    }
    #expect(try fleet.keys().count == 2)
    // There is no broker: nothing waits for it, and whoever wants access meanwhile gets it.
    let event = VehicleEvent(
      vehicle: vehicle.uuid, sequence: 1, previous: .random(), .init(.notice, time: now, notice: now + 1000))
    let archive = OperatorPlace("\(folder.path)/operator").archive(of: vehicle.uuid)
    try archive.writer().append([SignedEvent(kept: Array(event.signed(by: SigningKey()).utf8))])
    try fleet.retireKey(tokens: [], now: now)
    #expect(try fleet.keys().count == 1)
  }

  @Test("a server and commands by hand add to the same events, and none twice")
  func events() throws {
    let (key, other) = (SigningKey(), SigningKey())
    var all: [SignedEvent] = []
    for sequence in 1...50 {
      let event = VehicleEvent(
        vehicle: vehicle.uuid, sequence: Int64(sequence), previous: all.last?.digest ?? .random(),
        .init(.notice, time: now))
      all.append(try SignedEvent(kept: Array(event.signed(by: key).utf8)))
    }
    func events(after place: EventPlace?, upTo count: Int, by key: SigningKey) throws -> [SignedEvent] {
      try fleet.events(of: vehicle.uuid, verifiedBy: key.verificationKey, after: place, upTo: count)
    }
    #expect(try events(after: nil, upTo: 9, by: key).isEmpty)
    #expect(try fleet.keep(Array(all[..<3]), of: vehicle.uuid, after: nil))
    // Somebody else was faster.
    #expect(try !fleet.keep(all, of: vehicle.uuid, after: nil))
    #expect(try fleet.keep(Array(all[3...]), of: vehicle.uuid, after: all[2].place))
    #expect(try fleet.lastEvent(of: vehicle.uuid) == all[49].place)
    #expect(try events(after: nil, upTo: 9, by: key) == Array(all[41...]))
    #expect(try events(after: nil, upTo: 25, by: key) == Array(all[25...]))
    #expect(try events(after: all[19].place, upTo: 9, by: key) == Array(all[20..<29]))
    #expect(try events(after: all[49].place, upTo: 9, by: key).isEmpty)
    #expect(try events(after: EventPlace(1, .random()), upTo: 9, by: key).isEmpty)
    // A file that somebody has changed says nothing in a vehicle's name.
    #expect(try events(after: nil, upTo: 9, by: other).isEmpty)
    let archive = OperatorPlace("\(folder.path)/operator").archive(of: vehicle.uuid)
    let hand = try archive.writer()
    #expect(try !fleet.keep(all, of: vehicle.uuid, after: all[49].place))
    #expect(throws: EventError.inUse(archive.path)) { try archive.writer(patience: .milliseconds(50)) }
    withExtendedLifetime(hand) {}
  }
}
