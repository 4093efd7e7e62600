import Foundation
import TestSupport
import Testing

/// `open` and `status` need a vehicle that answers; they are not here.
@Suite("Manual pages on JSON") struct JSONTests {
  let folder: TemporaryFolder
  let vehicle: String

  /// A vehicle, for the commands that need one.
  init() throws {
    folder = try TemporaryFolder()
    vehicle = "\(folder.path)/car"
    let provision = try Subprocess.run(
      product: "stepctl", ["provision", "vehicle", vehicle, "--beacon", "hci0", "--json"])
    try #require(provision.status == 0, "\(provision.errors)")
    // To start a vehicle takes systemd.
    try expect("stepctl-provision-vehicle.1", toDocument: [provision.output])
  }

  @Test("scan documents what it prints")
  func scan() throws {
    try expect("stepctl-scan.1", toDocument: [json(["scan", "--radio", "btsnoop:\(capture)"])])
  }

  @Test("locate documents what it prints")
  func locate() throws {
    let file = "\(vehicle)/vehicle.toml"
    let output = try json(["locate", "--radio", "btsnoop:\(capture)", "--vehicle", file])
    // The UID of a tag takes a reader.
    try expect("stepctl-locate.1", toDocument: [output], besides: ["uid"])
  }

  @Test("doctor documents what it prints")
  func doctor() throws {
    try expect("stepctl-doctor.1", toDocument: [json(["doctor", "--radio", "btsnoop:\(capture)"])])
  }

  @Test("evaluate documents what it prints")
  func evaluate() throws {
    let positions = try folder.write("positions.csv", "capture,side,distance_m\ncorners,left,1\n")
    let outcomes = try folder.write("a.jsonl", #"{"outcome":"refused","code":"refused","method":"nfc","duration_s":1}"#)
    let van = try folder.write(
      "van.toml",
      """
      name = "van"
      uuid = "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"
      steps = [{ id = "left", side = "left", major = 1 }]

      """)
    let output = try json([
      "evaluate", capture, "--positions", positions, "--vehicle", van, "--outcomes", outcomes,
    ])
    #expect(output.contains("\"captures\":1"))
    try expect("stepctl-evaluate.1", toDocument: [output])
  }

  @Test("provision beacon documents what it prints")
  func provisionBeacon() throws {
    // Of a vehicle that does not send its beacons itself.
    let van = "\(folder.path)/van"
    _ = try json(["provision", "vehicle", van])
    let output = try json(["provision", "beacon", "--step", "left", "--vehicle", "\(van)/vehicle.toml"])
    try expect("stepctl-provision-beacon.1", toDocument: [output])
  }

  @Test("provision token documents what it prints")
  func provisionToken() throws {
    let output = try json(["provision", "token", vehicle, "--rider", "anna"])
    try expect("stepctl-provision-token.1", toDocument: [output])
  }

  @Test("config documents what it prints")
  func config() throws {
    let file = "\(vehicle)/vehicle.toml"
    try expect(
      "stepctl-config.1", toDocument: [json(["config", "show", "--vehicle", file]), json(["config", "path"])])
  }

  @Test("provision qr documents what it prints")
  func provisionQR() throws {
    try expect("stepctl-provision-qr.1", toDocument: [json(["provision", "qr", "--sheet", "--vehicle", vehicle])])
  }

  @Test("config import documents what it prints")
  func configImport() throws {
    let home = ["HOME": folder.path]
    let output = try Subprocess.run(
      product: "stepctl", ["config", "import", vehicle, "--yes", "--json"], environment: home)
    try expect("stepctl-config-import.1", toDocument: [output.output])
  }

  // MARK: -

  /// What every failure has, which stepctl(1) documents.
  private static let failure: Set = ["outcome", "code", "message", "hint", "exit"]

  private let capture = Repository.fixture("captures/corners.btsnoop")

  private func json(_ arguments: [String]) throws -> String {
    try Subprocess.run(product: "stepctl", arguments + ["--json"]).output
  }

  /// Every member is named in the part of the page on JSON, and every tag there is a member, or one of the `others`.
  private func expect(_ file: String, toDocument outputs: [String], besides others: Set<String> = []) throws {
    var members: Set<String> = []
    for line in outputs.flatMap({ $0.split(separator: "\n") }) {
      collect(try JSONSerialization.jsonObject(with: Data(line.utf8)), &members)
    }
    try #require(!members.isEmpty, "\(file)")
    let (tags, all) = try ManualPage(file).literals("DESCRIPTION", "JSON")
    #expect(members.subtracting(all).subtracting(Self.failure) == [], "\(file) does not have these")
    #expect(tags.subtracting(members) == others, "\(file): nothing prints these")
  }

  private func collect(_ value: Any, _ members: inout Set<String>) {
    if let object = value as? [String: Any] {
      members.formUnion(object.keys)
      for member in object.values { collect(member, &members) }
    } else if let array = value as? [Any] {
      for element in array { collect(element, &members) }
    }
  }
}
