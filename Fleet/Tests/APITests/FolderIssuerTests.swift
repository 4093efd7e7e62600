import Access
import Domain
import Encoding
import FleetTestSupport
import Foundation
import Logging
import Operator
import StepProtocol
import Testing

@testable import API

/// The operator's real folder, without a broker.
@Suite struct FolderIssuerTests {
  private let folder: TestFolder
  private let log = Log()
  private let issuer: FolderIssuer
  private let now: Int64 = 1_800_000_000
  private let enrolment = Enrolment(
    code: "", name: nil, id: .random(), topic: TopicPrefix("fleet/bus")!, steps: PlayedIssuer.steps,
    encryptionKey: DecryptionKey().encryptionKey, statementKey: SigningKey().verificationKey,
    certificateRequest: [1, 2, 3])

  init() throws {
    folder = TestFolder()
    // Port 1 is nobody's: what is published is refused at once.
    let place = try FleetOperator.create(folder.path + "/operator", host: "localhost", port: 1, now: now)
    issuer = FolderIssuer(
      place, broker: .mosquitto(hasPlugin: false), logger: Logger(label: "test") { [log] _ in log.handler() },
      clock: { [now] in now })
  }

  private func error(_ work: () async throws -> Void) async -> IssuerError? {
    do {
      try await work()
      return nil
    } catch { return error as? IssuerError }
  }

  /// openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=controller -outform DER
  private static let controller = Base64URL.decode(
    """
    MIHOMHcCAQAwFTETMBEGA1UEAwwKY29udHJvbGxlcjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABGO8B3gV40POoB9filcqmKd9\
    HVuGFBM_pBUguW-RBkb-FiBcmCQlbpcwiOtgAxpJTeyY8RgaNvHLoWEBHrdyOGagADAKBggqhkjOPQQDAgNHADBEAiBH0CJ6q39c\
    2OjuighU-PY8ma-T521BXx4BLMgcuvmJNwIgb47o4iNzJwOjzmJzmJTaQ4ONI6ThL8tvjZg_P_BF1pc
    """)!

  /// The same, with `/CN=rider`.
  private static let rider = Base64URL.decode(
    """
    MIHKMHICAQAwEDEOMAwGA1UEAwwFcmlkZXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQXpe7y5Ndq9vH8WAYxlOGNMPb4-OYq\
    kY2tF7Do_qphNjXeMV6EY33fKbFN6u3AfjmA-ZpLVZ86q1V2DmlgrmI4oAAwCgYIKoZIzj0EAwIDSAAwRQIhAJv1UmG2PFlsPG2v\
    ynNYGnKElaYkjTOeBeUQkwc7NYMqAiAM4Zc_RQSkT_Wmnv1OgmMVgqvt9m0uMCVi7vX_Juhieg
    """)!

  /// A vehicle that has joined, and that the folder has.
  private func joined() async throws -> (VehicleRecord, Admission) {
    let vehicle = try vehicle()
    let whole = Enrolment(
      code: "", name: nil, id: enrolment.id, topic: enrolment.topic, steps: enrolment.steps,
      encryptionKey: enrolment.encryptionKey, statementKey: enrolment.statementKey,
      certificateRequest: Self.controller)
    let admission = try await issuer.admit(vehicle, whole, now: now)
    let record = VehicleRecord(
      vehicle: vehicle, topic: enrolment.topic, encryptionKey: enrolment.encryptionKey,
      signingKey: enrolment.statementKey, certificate: Array(admission.certificate.utf8))
    try await issuer.keep([vehicle.uuid.description: record], without: [:])
    return (record, admission)
  }

  private func issue(_ vehicle: VehicleRecord, to key: SigningKey) async throws -> IssuedToken {
    let request = DeviceRequest.signed(name: "phone", certificateRequest: Self.rider, issued: now, by: key)
    return try await issuer.issue(
      Grant(
        vehicle: vehicle, subject: "b-1", steps: [StepID("left")!], validity: now..<now + 600,
        request: try DeviceRequest(verifying: request)), now: now)
  }

  @Test func `a vehicle joins, and the folder has its public part`() async throws {
    let (record, admission) = try await joined()
    #expect(admission.keys == (try await issuer.keys()) && admission.host == "localhost" && admission.port == 1)
    #expect(admission.authority.hasPrefix("-----BEGIN CERTIFICATE") && admission.end > now)
    #expect(admission.certificate.hasPrefix("-----BEGIN CERTIFICATE"))
    let name = record.vehicle.uuid.description
    #expect(try await issuer.record(in: name) == record)
    #expect(try await issuer.folders() == [name])
    // What is there stays.
    let file = folder.path + "/operator/vehicles/\(name)/vehicle.toml"
    let text = try String(contentsOfFile: file, encoding: .utf8) + "# by hand\n"
    try text.write(toFile: file, atomically: true, encoding: .utf8)
    try await issuer.keep([name: record], without: [:])
    #expect(try String(contentsOfFile: file, encoding: .utf8) == text)
  }

  @Test func `the broker's lists have every vehicle, and are written when something has changed`() async throws {
    let list = folder.path + "/operator/mosquitto.acl"
    func content() throws -> String { try String(contentsOfFile: list, encoding: .utf8) }
    func write(_ known: [String: VehicleTopics] = [:]) async throws -> String {
      try "old".write(toFile: list, atomically: true, encoding: .utf8)
      try await issuer.write(BrokerLists(known: known, others: [], former: []))
      return try content()
    }
    let (record, _) = try await joined()
    let (id, folder) = (record.vehicle.uuid, record.vehicle.uuid.description)
    #expect(try await write().contains("user controller:\(id)\n"))
    #expect(try await write() == "old")
    // What the server knows is not read.
    let other = VehicleTopics(of: .random(), topic: TopicPrefix("known")!, steps: record.vehicle.steps)
    let known = try await write([folder: other])
    #expect(known.contains("user controller:\(other.vehicle)\n") && !known.contains("\(id)"))
    // Another server, of the same folder, has made a vehicle's folder, and has ended before it wrote the lists.
    let late = VehicleRecord(
      vehicle: try Vehicle(name: "late", uuid: .random(), steps: record.vehicle.steps), topic: TopicPrefix("late")!,
      encryptionKey: record.encryptionKey, signingKey: record.signingKey, certificate: record.certificate)
    _ = try await write()
    _ = try FleetOperator(self.folder.path + "/operator").keep(["late": late], without: [:])
    #expect(try await write().contains("late/"))
    try await issuer.keep([:], without: [folder: [.random()], "late": [late.vehicle.uuid]])
    #expect(try await issuer.folders() == [folder])
    try await issuer.keep([:], without: [folder: [.random(), id]])
    #expect(try await issuer.record(in: folder) == nil)
    #expect(try await !write().contains("user controller:"))
  }

  @Test func `no name of a folder leads elsewhere`() async throws {
    let (record, _) = try await joined()
    let outside = await error { try await issuer.keep(["../../outside": record], without: [:]) }
    guard case .failed = outside else { throw Unexpected() }
    try await issuer.keep([:], without: ["../vehicles/\(record.vehicle.uuid)": [record.vehicle.uuid]])
    #expect(try await issuer.folders().count == 1)
  }

  @Test func `a token is issued, and noted nowhere`() async throws {
    let (vehicle, _) = try await joined()
    let phone = SigningKey()
    let token = try await issue(vehicle, to: phone)
    let read = try AccessFile(parsing: token.text, now: now).token
    #expect(read.id == token.entry.id && read.expires == now + 600 && token.entry.expires == now + 600)
    #expect(token.entry.device == phone.verificationKey.thumbprint && token.entry.vehicle == vehicle.vehicle.uuid)
    #expect(token.entry.rider == "b-1" && token.entry.steps == [StepID("left")!] && token.entry.notBefore == now)
    #expect(try await issuer.keys().map(\.thumbprint) == [token.entry.key])
    #expect(token.entry.certificate!.end > now + 86_000)
    #expect(try await issuer.ledger(now: now).tokens.isEmpty)
  }

  @Test func `the ledger has what the server puts there, and the broker's list its certificates`() async throws {
    let (vehicle, _) = try await joined()
    let list = folder.path + "/operator/tls/crl.pem"
    func content() throws -> String { try String(contentsOfFile: list, encoding: .utf8) }
    let (before, empty) = (try content(), try await issuer.ledger(now: now))
    let token = try await issue(vehicle, to: SigningKey()).entry
    let revoked = Ledger(
      tokens: [token], withdrawals: [.init(.token(token.id), until: token.expires, since: now)],
      revokedCertificates: [.init(token.certificate!, since: now)])
    try await issuer.keep(revoked, inPlaceOf: empty, now: now)
    #expect(try await issuer.ledger(now: now).hasSameEntries(as: revoked))
    #expect(try content() != before)
    // What came since it was read stays.
    try await issuer.keep(empty, inPlaceOf: empty, now: now)
    #expect(try await issuer.ledger(now: now).hasSameEntries(as: revoked))
    try await issuer.keep(empty, inPlaceOf: revoked, now: now)
    #expect(try await issuer.ledger(now: now).hasSameEntries(as: empty))
  }

  @Test func `a notice has its number, and what is revoked`() async throws {
    let (vehicle, _) = try await joined()
    let revoked = [Notice.Revocation(.token("t"), until: now + 600)]
    let results = try await issuer.notices(
      for: [
        .init(id: vehicle.vehicle.uuid, topic: vehicle.topic, number: now + 7, revoked: revoked),
        .init(
          id: vehicle.vehicle.uuid, topic: vehicle.topic, number: now,
          revoked: (0..<200).map { .init(.token("\($0)"), until: now + 600) }),
      ], now: now)
    let notice = try results[0].get()
    #expect(notice.topic == enrolment.topic.notice)
    let read = try Notice.read(Array(notice.text.utf8), verifiedBy: try await issuer.keys())
    #expect(read?.vehicle == vehicle.vehicle.uuid && read?.sequence == now + 7)
    #expect(read?.revoked == revoked)
    #expect(throws: (any Error).self) { try results[1].get() }
    #expect(try await issuer.number(ofNotice: Array(notice.text.utf8)) == now + 7)
    let foreign = Notice(vehicle: vehicle.vehicle.uuid, sequence: 9, issued: now, keys: [SigningKey().verificationKey])
    #expect(try await issuer.number(ofNotice: Array(foreign.signed(by: SigningKey()).utf8)) == nil)
  }

  @Test func `the ends of certificates are known`() async throws {
    let before = try await issuer.certificateEnds()
    #expect(Set(before.keys) == ["authority", "broker", "operator"] && before.values.allSatisfy { $0 > now })
    let (_, admission) = try await joined()
    let other = FolderIssuer(
      FleetOperator(folder.path + "/operator"), broker: .mosquitto(hasPlugin: false), logger: Logger(label: "test"),
      clock: { [now] in now })
    #expect(try await other.certificateEnds()["vehicle"] == admission.end)
  }

  private func vehicle() throws -> Vehicle { try Vehicle(name: "bus", uuid: enrolment.id, steps: enrolment.steps) }

  @Test func `the operator's keys change one step at a time`() async throws {
    let first = try await issuer.keys()
    #expect(first.count == 1)
    #expect(try await issuer.rotateKeys(above: 0, next: nil, now: now).text.hasPrefix("the next key is "))
    #expect(try await issuer.keys().first == first[0])
    #expect(try await issuer.signers() == first)
    #expect(
      try await issuer.rotateKeys(above: 0, next: nil, now: now).text.hasSuffix(
        " signs from now on; the one before still counts"))
    #expect(try await issuer.keys().last == first[0])
    #expect(try await issuer.signers() == issuer.keys())
    // The operator may read why not.
    let refused = await error { _ = try await issuer.rotateKeys(above: 0, next: nil, now: now) }
    guard case .failed(let reason) = refused else { throw Unexpected() }
    #expect(!reason.isEmpty)
    let old = Ledger.Entry(
      id: "t", rider: "anna", vehicle: .random(), steps: [], notBefore: now, expires: now + 60,
      device: SigningKey().verificationKey.thumbprint, key: first[0].thumbprint, certificate: nil)
    let locked = await error { try await issuer.retireKey(tokens: [old], now: now) }
    #expect(locked == .failed("riders would be locked out: anna"))
    try await issuer.retireKey(tokens: [], now: now)
    #expect(try await issuer.keys().contains(first[0]) == false)
  }
  private struct Unexpected: Error {}

  @Test func `a vehicle whose certificate request is damaged is not admitted`() async throws {
    let refused = await error { _ = try await issuer.admit(vehicle(), enrolment, now: now) }
    guard case .request(let reason) = refused else { throw Unexpected() }
    #expect(reason.hasPrefix("the certificate request: "))
    #expect(try await issuer.folders().isEmpty)
  }

  @Test func `a vehicle that nobody has made is in no folder`() async throws {
    #expect(try await issuer.record(in: "car") == nil)
    // A name that no folder can have is none, too.
    #expect(try await issuer.record(in: "../car") == nil)
  }

  /// A clock of 1970, one that is behind the authority, and one after its end.
  @Test(arguments: [60, 1_799_999_699, 1_800_000_000 + 3651 * 86_400])
  func `nobody is admitted or gets access by a wrong clock`(wrong: Int64) async throws {
    let (vehicle, _) = try await joined()
    let other = UUID.random()
    let request = DeviceRequest.signed(
      name: "phone", certificateRequest: Self.rider, issued: now, by: SigningKey())
    let van = try Vehicle(name: "van", uuid: other, steps: enrolment.steps)
    let joining = Enrolment(
      code: "", name: nil, id: other, topic: TopicPrefix("fleet/van")!, steps: enrolment.steps,
      encryptionKey: enrolment.encryptionKey, statementKey: enrolment.statementKey,
      certificateRequest: Self.controller)
    let grant = Grant(
      vehicle: vehicle, subject: "b-1", steps: [StepID("left")!], validity: now..<now + 60,
      request: try DeviceRequest(verifying: request))
    let none = try await issuer.ledger(now: now)
    for refused in [
      await error { _ = try await issuer.admit(van, joining, now: wrong) },
      await error { _ = try await issuer.issue(grant, now: wrong) },
      await error { try await issuer.keep(none, inPlaceOf: none, now: wrong) },
      await error { _ = try await issuer.rotateKeys(above: 0, next: nil, now: wrong) },
    ] {
      guard case .failed(let reason) = refused else { throw Unexpected() }
      #expect(reason.contains("clock") && reason.hasSuffix("; nothing was changed"))
    }
    #expect(try await issuer.record(in: other.description) == nil)
    #expect(try await issuer.keys().count == 1)
  }

  @Test("without a broker a connection ends, and says with whom it could not begin")
  func noBroker() async throws {
    let line = try issuer.connect()
    defer { line.close() }
    line.subscribe(to: "fleet/bus/notice")
    line.publish("notice", to: "fleet/bus/notice")
    for _ in 0..<600 {
      for case .ended(let error) in try await line.wait(for: .milliseconds(100)).events {
        return #expect("\(error)".contains("localhost:1"))
      }
    }
    Issue.record("the connection has not ended")
  }

  @Test("who waits for a broker can be woken")
  func woken() async throws {
    let line = try issuer.connect()
    defer { line.close() }
    line.wake()
    #expect(try await line.wait(for: .seconds(20)).isWoken)
  }

  @Test("the number of the last notice is that of the operator's ledger")
  func lastNumber() async throws {
    #expect(try await issuer.lastNumber() == 0)
    let (_, number) = try await issuer.rotateKeys(above: 7, next: nil, now: now)
    #expect(number >= 7)
    #expect(try await issuer.lastNumber() == number)
  }

  @Test func `an error is told in words`() {
    #expect(IssuerError.request("damaged").description == "damaged")
    #expect(IssuerError.failed("b").description == "b")
  }
}

/// A folder that goes with its owner.
final class TestFolder: Sendable {
  let path = FileManager.default.temporaryDirectory.path + "/stepfleet-\(UInt64.random(in: 0...UInt64.max))"
  init() { try! FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }
  deinit { try? FileManager.default.removeItem(atPath: path) }
}
