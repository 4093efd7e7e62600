import Domain
import FleetTestSupport
import Foundation
import Logging
import Provisioning
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
