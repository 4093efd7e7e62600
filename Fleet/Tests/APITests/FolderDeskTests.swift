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
@Suite struct FolderDeskTests {
  private let folder: TestFolder
  private let log = Log()
  private let desk: FolderDesk
  private let now: Int64 = 1_800_000_000
  private let enrolment = Enrolment(
    code: "", name: nil, id: .random(), topic: TopicPrefix("fleet/bus")!, steps: PlayedDesk.steps,
    encryptionKey: DecryptionKey().encryptionKey, statementKey: SigningKey().verificationKey,
    certificateRequest: [1, 2, 3])

  init() throws {
    folder = TestFolder()
    // Port 1 is nobody's: what is published is refused at once.
    let place = try FleetOperator.create(folder.path + "/operator", host: "localhost", port: 1, now: now)
    desk = FolderDesk(place, logger: Logger(label: "test") { [log] _ in log.handler() }, clock: { [now] in now })
  }

  private func error(_ work: () async throws -> Void) async -> DeskError? {
    do {
      try await work()
      return nil
    } catch { return error as? DeskError }
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

  /// A vehicle that has joined.
  private func joined() async throws -> (Vehicle, Admission) {
    let vehicle = try vehicle()
    let whole = Enrolment(
      code: "", name: nil, id: enrolment.id, topic: enrolment.topic, steps: enrolment.steps,
      encryptionKey: enrolment.encryptionKey, statementKey: enrolment.statementKey,
      certificateRequest: Self.controller)
    return (vehicle, try await desk.admit(vehicle, whole, now: now))
  }

  private func issue(_ vehicle: Vehicle, to key: SigningKey) async throws -> IssuedToken {
    let request = DeviceRequest.signed(name: "phone", certificateRequest: Self.rider, issued: now, by: key)
    return try await desk.issue(
      Grant(
        folder: vehicle.uuid.description, subject: "b-1", steps: [StepID("left")!], validity: now..<now + 600,
        request: try DeviceRequest(verifying: request)), now: now)
  }

  @Test func `a vehicle joins, once with its id and topic`() async throws {
    let (vehicle, admission) = try await joined()
    #expect(admission.keys == (try await desk.keys()) && admission.host == "localhost" && admission.port == 1)
    #expect(admission.authority.hasPrefix("-----BEGIN CERTIFICATE") && admission.end > now)
    #expect(admission.certificate.hasPrefix("-----BEGIN CERTIFICATE"))
    #expect(try await desk.vehicle(in: vehicle.uuid.description) == vehicle)
    let again = await error { _ = try await joined() }
    guard case .taken = again else { throw Unexpected() }
  }

  @Test func `a token is issued, and revoked, and a revoked device gets no more`() async throws {
    let (vehicle, _) = try await joined()
    let phone = SigningKey()
    let token = try await issue(vehicle, to: phone)
    #expect(token.expires == now + 600)
    #expect(try AccessFile(parsing: token.text, now: now).token.id == token.jti)
    #expect(try await desk.revoke([.token(token.jti)], of: [vehicle.uuid], now: now) == 1)
    _ = try await issue(vehicle, to: phone)
    let subject = Notice.Subject.device(phone.verificationKey.thumbprint)
    #expect(try await desk.revoke([subject], of: [vehicle.uuid], now: now) == 1)
    #expect(await error { _ = try await issue(vehicle, to: phone) } == .deviceRevoked)
    // The notices wait for the broker.
    while !log.text.contains("error: a notice is not published") { try await Task.sleep(for: .milliseconds(5)) }
  }

  @Test func `a device gets so many tokens, and more when one has ended`() async throws {
    let (vehicle, _) = try await joined()
    let phone = SigningKey()
    for _ in 0..<16 { _ = try await issue(vehicle, to: phone) }
    #expect(await error { _ = try await issue(vehicle, to: phone) } == .tooMany(until: now + 600))
  }

  @Test func `a vehicle's folder stays until its last notice is published`() async throws {
    let (vehicle, _) = try await joined()
    let folder = vehicle.uuid.description
    try await desk.remove(folder, telling: vehicle.uuid)
    #expect(log.text.contains("error: a notice is not published"))
    #expect(try await desk.vehicle(in: folder) != nil)
    try await desk.remove(folder, telling: nil)
    #expect(try await desk.vehicle(in: folder) == nil)
  }

  private func vehicle() throws -> Vehicle { try Vehicle(name: "bus", uuid: enrolment.id, steps: enrolment.steps) }

  @Test func `the operator's keys change one step at a time`() async throws {
    let first = try await desk.keys()
    #expect(first.count == 1)
    #expect(try await desk.rotateKeys(now: now).hasPrefix("the next key is "))
    #expect(try await desk.keys().first == first[0])
    #expect(try await desk.rotateKeys(now: now).hasSuffix(" signs from now on; the one before still counts"))
    #expect(try await desk.keys().last == first[0])
    // The operator may read why not.
    let refused = await error { _ = try await desk.rotateKeys(now: now) }
    guard case .failed(let reason) = refused else { throw Unexpected() }
    #expect(!reason.isEmpty)
    try await desk.retireKey(now: now)
    #expect(try await desk.keys().contains(first[0]) == false)
  }
  private struct Unexpected: Error {}

  @Test func `a vehicle whose certificate request is damaged is not admitted`() async throws {
    let refused = await error { _ = try await desk.admit(vehicle(), enrolment, now: now) }
    guard case .request(let reason) = refused else { throw Unexpected() }
    #expect(reason.hasPrefix("the certificate request: "))
    #expect(try await desk.vehicle(in: enrolment.id.description) == nil)
  }

  @Test func `a vehicle that nobody has made is in no folder`() async throws {
    #expect(try await desk.vehicle(in: "car") == nil)
    // A name that no folder can have is none, too.
    #expect(try await desk.vehicle(in: "../car") == nil)
  }

  @Test func `access to a vehicle that is not there is a failure for the operator to read`() async throws {
    let phone = TestDevice()
    let grant = Grant(
      folder: "car", subject: "b-1", steps: [StepID("left")!], validity: now..<now + 60,
      request: try phone.request(at: now))
    let refused = await error { _ = try await desk.issue(grant, now: now) }
    guard case .failed(let reason) = refused else { throw Unexpected() }
    #expect(reason.contains("car"))
  }

  @Test func `what has nothing to revoke revokes nothing, and is tidy`() async throws {
    #expect(try await desk.revoke([.token("none")], of: [], now: now) == 0)
    #expect(log.text.contains("notice: access revoked tokens=0 vehicles=0"))
    try await desk.tidy(now: now)
    // Nobody is told who is not there.
    desk.publish(to: [.random()])
  }

  @Test func `an error is told in words`() {
    #expect(DeskError.request("damaged").description == "damaged")
    #expect(DeskError.tooMany(until: 0).description == "too many tokens for the vehicle or the device have not ended")
    #expect(DeskError.deviceRevoked.description == "the device is revoked")
    #expect(DeskError.taken("a").description == "a" && DeskError.failed("b").description == "b")
  }
}

/// A folder that goes with its owner.
final class TestFolder: Sendable {
  let path = FileManager.default.temporaryDirectory.path + "/stepfleet-\(UInt64.random(in: 0...UInt64.max))"
  init() { try! FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }
  deinit { try? FileManager.default.removeItem(atPath: path) }
}
