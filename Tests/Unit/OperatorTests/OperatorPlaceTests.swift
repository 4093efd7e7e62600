import Domain
import FileFormats
import Glibc
import MQTT
import StepProtocol
import SystemIO
import TestSupport
import Testing

@testable import Operator

@Suite("An operator's vehicles") struct OperatorPlaceTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  static func plan(_ name: String) throws -> VehiclePlan {
    let vehicle = try Vehicle(name: name, uuid: .random(), steps: Vehicle.sample().steps)
    return VehiclePlan(vehicle: vehicle, topic: TopicPrefix("vehicles/\(vehicle.uuid)")!, servo: .simulated)
  }

  /// A vehicle that is its own operator, and one that was added to this operator.
  func vehicles() throws -> (own: VehicleFolder, added: VehicleFolder) {
    let own = try folder.vehicle()
    let added = VehicleFolder("\(folder.path)/bus")
    _ = try added.provisionVehicle(Self.plan("Bus"), of: .place(own.place, nil), now: now, force: false)
    return (own, added)
  }

  @Test("a vehicle can be added to one that was its own operator: they have one key, authority and broker")
  func growth() throws {
    let (own, added) = try vehicles()
    let record = own.place.record(of: "bus")
    #expect(try own.place.vehicles().map(\.path) == [own.path, record.path])
    #expect(record.place.path == own.path && own.place.path == own.path)
    let files = try [own, added, record].map { try $0.readVehicleFile() }
    #expect(Set(files.map { $0.operatorKey }).count == 1 && Set(files.map { $0.broker?.port }).count == 1)
    #expect(!Files.exists(added.path("operator")) && !Files.exists(added.path("mosquitto.conf")))
    let access = try TemporaryFolder.text(own.path("mosquitto.acl"))
    for file in files { #expect(access.contains("user rider:\(file.vehicle.uuid)\n")) }
    #expect(!access.contains("user rider\n"))
    // Nothing is made in place of an operator on whom others depend.
    for force in [false, true] {
      #expect(throws: ProvisioningError.operatorExists(own.path)) { try own.provisionVehicle(.sample(), force: force) }
    }
  }

  @Test("one notice revokes at the vehicle that it concerns, and both are in one ledger")
  func revocation() throws {
    let (own, _) = try vehicles()
    let place = own.place
    _ = try own.provisionToken(.sample(), now: now, force: false)
    let token = try place.record(of: "bus").provisionToken(.sample(), now: now, force: false).token
    #expect(try place.ledger().tokens.count == 2)
    #expect(try place.revoke([.token(token.id)], now: now).entries.map(\.id) == [token.id])
    #expect(try place.notices(now: now).map(\.revocations) == [0, 1])
  }

  @Test("certificates of both end and are renewed; the added vehicle's has to be brought to it")
  func certificates() throws {
    let (own, added) = try vehicles()
    let record = own.place.record(of: "bus")
    let holders = try own.place.certificates().map(\.holder)
    #expect(holders.filter { $0 == .controller(elsewhere: true) }.count == 1)
    #expect(holders.filter { $0 == .controller(elsewhere: false) }.count == 1)
    let before = try Files.read(record.path("tls/controller.pem"))
    #expect(try record.renewCertificates(now: now + day) == now + 826 * day)
    #expect(try Files.read(record.path("tls/controller.pem")) != before)
    #expect(try Files.read(added.path("tls/controller.pem")) == before)
  }

  @Test("an address that one vehicle's file has is the broker's, and so every vehicle's")
  func address() throws {
    let (own, _) = try vehicles()
    let record = own.place.record(of: "bus")
    _ = try record.provisionToken(.sample(), now: now, force: false)
    let file = own.path("vehicle.toml")
    let text = try TemporaryFolder.text(file).replacing("port = 8883", with: "port = 18883 # new")
    try Files.replace(file, with: text.utf8, mode: 0o644)
    let updated = try own.update(now: now)
    #expect(updated.map(\.vehicle.path) == [own.path, record.path] && updated[1].stale.reissued == [.ann])
    #expect(try own.place.broker() == .local(18883))
    #expect(try TemporaryFolder.text(file) == text, "what a person wrote stays")
    #expect(try record.readVehicleFile().broker?.port == 18883)
    #expect(try TemporaryFolder.text(own.path("mosquitto.conf")).contains("\nlistener 18883\nbind_interface lo\n"))
    #expect(try own.update(now: now).map(\.vehicle.path) == [own.path])
  }

  @Test("a damaged address is said, and a folder without operator is no operator's")
  func damaged() throws {
    let own = try folder.vehicle()
    for text in ["", "{}", #"{"host":"a","port":0}"#, #"{"host":"a b","port":1}"#, #"{"host":"a","port":1,"x":1}"#] {
      try Files.replace(own.path("broker.json"), with: text.utf8, mode: 0o644)
      #expect(throws: LedgerError.damaged(own.path("broker.json"))) { try own.place.broker() }
    }
    for file in ["broker.json", "operator/ledger.json"] {
      unlink(own.path(file))
      let error = #expect(throws: LedgerError.missing(own.path(file))) {
        _ = try own.place.ledger()
        _ = try own.place.broker()
      }
      #expect(error?.exitStatus == .noInput && error?.hint?.isEmpty == false)
    }
    let none = OperatorPlace("\(folder.path)/none")
    #expect(throws: LedgerError.noOperator(none.path)) {
      try VehicleFolder("\(folder.path)/bus").provisionVehicle(
        Self.plan("Bus"), of: .place(none, nil), now: now, force: false)
    }
    #expect(!Files.exists("\(folder.path)/bus"))
  }
}
