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

@Suite("what steps are recognised by")
struct IdentifierTests {
  private let folder: TemporaryFolder

  private static let rotating = """

    [beacon]
    period_s = 30

    [beacon.steps.left]
    secret = "left.beacon"
    adapter = "h4:tcp:127.0.0.1:6402"

    [beacon.steps.right]
    secret = "right.beacon"

    """
  private static let tags = "\n[tags]\nkeys = \"tags.json\"\n"
  private static let tag =
    #"{"uid":"04DE5F1EACC040","step":"left","meta_read_key":"000102030405060708090A0B0C0D0E0F","#
    + #""file_read_key":"0f0e0d0c0b0a09080706050403020100"}"#

  init() throws {
    folder = try TemporaryFolder()
    try folder.write("vehicle.toml", Sample.vehicle)
    try folder.write("stepd.key")
    try folder.write("encryption.jwk", DecryptionKey().jwk.text)
    try folder.write("signing.jwk", SigningKey().jwk.text)
    for name in ["left.beacon", "right.beacon"] { try folder.write(name, BeaconSecret().jwk.text) }
    try folder.write("tags.json", "[\(Self.tag)]")
  }

  private func read(_ more: String, vehicle: String? = nil) throws -> ControllerSetup {
    if let vehicle { try folder.write("vehicle.toml", vehicle) }
    return try ControllerSetup(reading: folder.write("stepd.toml", Sample.controller + more))
  }

  private func vehicle(_ text: String) throws -> VehicleFile {
    try VehicleFile(parsing: Array(text.utf8), path: "vehicle.toml")
  }

  private func step(_ line: String) -> String {
    Sample.vehicle.replacing("major = 1\n", with: "major = 1\n\(line)\n")
  }

  // MARK: - Vehicle files

  @Test("a step's minor and tags, and the operator, are read, and written with the file")
  func vehicleFile() throws {
    let text =
      "operator = \"\(Sample.key)\"\n" + step("minor = 65535\ntags = [\"04a1b2c3d4e5f6\", \"01020304\"]")
    let file = try vehicle(text)
    #expect(file.operatorKey == Sample.verificationKey)
    #expect(file.vehicle.steps[0].minor == 65535)
    #expect(file.vehicle.steps[0].tags.map(\.description) == ["04A1B2C3D4E5F6", "01020304"])
    #expect(try vehicle(file.render()) == file)
    #expect(try vehicle(Sample.vehicle).vehicle.steps[0].tags.isEmpty)
    #expect(!(try vehicle(Sample.vehicle).render().contains("tags")))
  }

  @Test(
    "a mistake in them is named",
    arguments: [
      ("minor = 65536", "[[steps]] minor: expected an integer from 0 to 65535, found 65536"),
      (
        "tags = []",
        "[[steps]] tags: expected an array of different UIDs of 8, 14 or 20 hexadecimal digits, found an empty array"
      ),
      (
        "tags = [\"04A1B2C3\", \"04a1b2c3\"]",
        "[[steps]] tags: expected an array of different UIDs of 8, 14 or 20 hexadecimal digits, found an array"
      ),
      (
        "tags = [\"04A1B2\"]",
        "[[steps]] tags: expected an array of different UIDs of 8, 14 or 20 hexadecimal digits, found an array"
      ),
      (
        "tags = \"04A1B2C3\"",
        "[[steps]] tags: expected an array of different UIDs of 8, 14 or 20 hexadecimal digits, found \"04A1B2C3\""
      ),
    ])
  func vehicleMistakes(line: String, expected: String) {
    #expect(complaint { _ = try vehicle(step(line)) } == "vehicle.toml:20: " + expected)
  }

  @Test("a tag is one step's")
  func tagTwice() {
    let text = step("tags = [\"04A1B2C3\"]").replacing(
      "major = 2\n", with: "major = 2\ntags = [\"01020304\", \"04A1B2C3\"]\n")
    #expect(
      complaint { _ = try vehicle(text) } == "vehicle.toml:26: [[steps]] tags: 04A1B2C3 is taken by the step in line 20"
    )
  }

  // MARK: - Editing vehicle files

  private func adding(_ uid: String, to step: StepID = Sample.left, in text: String) throws -> String {
    String(
      decoding: try VehicleFile.adding(tag: TagUID(uid)!, to: step, in: Array(text.utf8), path: "vehicle.toml"),
      as: UTF8.self)
  }

  @Test("a tag is added behind the major, or to those that are there, and every other byte stays")
  func addingTags() throws {
    #expect(try adding("04A1B2C3", in: Sample.vehicle) == step("tags = [\"04A1B2C3\"]"))
    let one = step("tags = [ \"04A1B2C3\" ]  # [ours]")
    #expect(try adding("01020304", in: one) == step("tags = [\"04A1B2C3\", \"01020304\"]  # [ours]"))
    #expect(try adding("04A1B2C3", in: one) == one)
    #expect(
      complaint { _ = try adding("04A1B2C3", to: Sample.right, in: one) }
        == "vehicle.toml:22: [[steps]] tags: [\"04A1B2C3\"] has a tag of another step in it")
  }

  @Test(
    "tags that are written over several lines are replaced as a whole",
    arguments: [
      "[\n  \"04A1B2C3\",\n]", "[ # ] is no end\n  \"04A1B2C3\" # \"]\"\n]", "[\r\n\t'04a1b2c3'\r\n]",
      "['04A1B2C3'  , ]", "[\"\"\"\n04A1B2C3\"\"\"]", "[\"04A1\\u00422C3\"]",
    ])
  func addingToLines(tags: String) throws {
    for after in ["", " # é ours"] {
      #expect(
        try adding("01020304", in: step("tags = \(tags)\(after)"))
          == step("tags = [\"04A1B2C3\", \"01020304\"]\(after)"))
    }
  }

  @Test("a minor is noted in the same way")
  func settingMinor() throws {
    func setting(_ minor: UInt16, in text: String) throws -> String {
      String(
        decoding: try VehicleFile.setting(minor: minor, of: Sample.left, in: Array(text.utf8), path: "vehicle.toml"),
        as: UTF8.self)
    }
    #expect(try setting(7, in: Sample.vehicle) == step("minor = 7"))
    #expect(try setting(8, in: step("minor = 7 # bought")) == step("minor = 8 # bought"))
  }

  // MARK: - The controller's file

  @Test("secrets of beacons and keys of tags are read, and lead from the file's folder")
  func controller() throws {
    let setup = try read(Self.rotating + Self.tags)
    #expect(setup.beaconRadios == [Sample.left: .h4(.tcp(host: "127.0.0.1", port: 6402))])
    for step in [Sample.left, Sample.right] {
      let secret = try KeyFile.beaconSecret("\(folder.path)/\(step).beacon")
      let minor = RotatingMinor(secret: secret, step: step, period: 30)
      #expect(setup.secrets.minors[step]?.minor(at: 1_767_225_600) == minor.minor(at: 1_767_225_600))
      #expect(setup.secrets.minors[step]?.change(after: 1) == 30)
    }
    let keys = DynamicTag.Keys(metaRead: Array(0...15), fileRead: Array(0...15).reversed())!
    let tag = try #require(setup.secrets.tags[TagUID("04DE5F1EACC040")!])
    #expect(tag.step == Sample.left && tag.keys == keys && setup.secrets.tags.count == 1)
    #expect(setup.file.policy.acceptsStatic)
    let plain = try read("")
    #expect(plain.beaconRadios.isEmpty && plain.secrets.minors.isEmpty && plain.secrets.tags.isEmpty)
  }

  @Test("what is rendered reads the same")
  func roundTrip() throws {
    let text = Sample.controller.replacing("proofs = [\"beacon\"]", with: "proofs = [\"qr\", \"nfc\"]\nstatic = false")
    var file = try ControllerFile(parsing: Array((text + Self.rotating + Self.tags).utf8), path: "stepd.toml")
    #expect(file.policy.methods == [.nfc, .qr] && !file.policy.acceptsStatic)
    #expect(try ControllerFile(parsing: Array(file.render().utf8), path: "stepd.toml") == file)
    (file.beacons, file.beaconPeriod) = ([:], RotatingMinor.standardPeriod)
    file.tagKeys = nil
    #expect(try ControllerFile(parsing: Array(file.render().utf8), path: "stepd.toml") == file)
  }

  @Test(
    "a mistake in them is named",
    arguments: [
      ("\n[beacon]\nperiod_s = 0\n", "stepd.toml:35: [beacon] period_s: expected an integer from 1 to 3600, found 0"),
      (
        "\n[beacon]\nperiod_s = 3601\n",
        "stepd.toml:35: [beacon] period_s: expected an integer from 1 to 3600, found 3601"
      ),
      ("\n[beacon.steps.left]\nadapter = \"hci0\"\n", "stepd.toml:34: [beacon.steps.left] secret is missing"),
      (
        "\n[beacon.steps.Left]\nsecret = \"x\"\n",
        "stepd.toml:34: [beacon.steps.Left] expected the id of a step, 1 to 32 of a-z, 0-9, \"-\" and \"_\", "
          + "found \"Left\""
      ),
      ("\n[tags]\n", "stepd.toml:34: [tags] keys is missing"),
    ])
  func mistakes(text: String, expected: String) {
    #expect(
      complaint {
        _ = try ControllerFile(parsing: Array((Sample.controller + text).utf8), path: "stepd.toml")
      } == expected)
  }

  @Test(
    "a radio that cannot send beacons is named",
    arguments: [
      ("wlan0", "\"wlan0\" is not a radio: expected \(RadioSpec.forms)"),
      ("h4:tcp:host", "\"h4:tcp:host\" is not a radio: the port is missing"),
      ("bluez:hci0", "bluez:hci0 cannot advertise: it takes an adapter (hci0) or a controller (h4:…)"),
      ("btsnoop:x", "btsnoop:x cannot advertise: it takes an adapter (hci0) or a controller (h4:…)"),
      ("", "expected non-empty text without control characters, found \"\""),
    ])
  func radios(adapter: String, expected: String) {
    let text = "\n[beacon.steps.right]\nsecret = \"x\"\nadapter = \"\(adapter)\"\n"
    #expect(
      complaint { _ = try read(text) } == "\(folder.path)/stepd.toml:36: [beacon.steps.right] adapter: \(expected)")
  }

  @Test("steps that the vehicle has not, and a minor that both rotates and stays, are refused")
  func disagreement() throws {
    let stepd = "\(folder.path)/stepd.toml"
    let car = "\(folder.path)/vehicle.toml"
    #expect(
      complaint { _ = try read("\n[beacon.steps.roof]\nsecret = \"left.beacon\"\n") }
        == "\(stepd):34: [beacon.steps.roof]: \(car) has no such step")
    try folder.write("tags.json", "[\(Self.tag.replacing("left", with: "roof"))]")
    #expect(
      complaint { _ = try read(Self.tags) }
        == "\(folder.path)/tags.json: 04DE5F1EACC040: \(car) has no step roof")
    #expect(
      complaint { _ = try read(Self.rotating, vehicle: step("minor = 7")) }
        == "\(stepd):37: [beacon.steps.left]: \(car) gives that step a minor that never changes")
  }

  @Test("a policy by which a step could never be moved is refused")
  func impossible() throws {
    func strict(_ proofs: String, _ more: String) -> String? {
      complaint {
        try folder.write(
          "stepd.toml",
          Sample.controller.replacing("proofs = [\"beacon\"]", with: "proofs = [\(proofs)]\nstatic = false") + more)
        _ = try ControllerSetup(reading: "\(folder.path)/stepd.toml")
      }
    }
    func error(_ step: String) -> String {
      "\(folder.path)/stepd.toml:16: [policy] static: false, and the step \(step) has no identifier that cannot be copied"
    }
    #expect(strict("\"beacon\"", Self.rotating) == nil)
    #expect(strict("\"beacon\"", "") == error("left"))
    #expect(strict("\"nfc\", \"qr\"", Self.rotating) == error("left"))
    #expect(strict("\"nfc\"", Self.tags) == error("right"))
    #expect(strict("\"beacon\", \"nfc\"", Self.rotating + Self.tags) == nil)
  }

  @Test("a secret that others can read, or that is not there, is refused", arguments: ["left.beacon", "tags.json"])
  func exposed(name: String) throws {
    let path = try folder.write(name, "[]", mode: 0o640)
    #expect(throws: ConfigurationError(path, "can be read by others: chmod 600 \(path)", kind: .permission)) {
      try read(Self.rotating + Self.tags)
    }
    let missing = (Self.rotating + Self.tags).replacing("\"\(name)\"", with: "\"no\"")
    #expect(throws: SystemError("open", "\(folder.path)/no", code: ENOENT)) {
      try read(missing)
    }
  }

  // MARK: - Keys of tags

  @Test("a damaged file of keys says which tag, and nothing of a key")
  func tagFile() throws {
    func complaint(_ text: String) -> String? {
      FileFormatsTests.complaint { _ = try TagKeyFile(parsing: Array(text.utf8), path: "tags.json") }
    }
    let form = "expected a uid, a step, and meta_read_key and file_read_key of 32 hexadecimal digits"
    #expect(complaint("[\(Self.tag), {}]") == "tags.json: tag 2: \(form)")
    for (part, replacement) in [
      ("04DE5F1EACC040", "04DE5F1EACC04"), ("left", "Left"), ("000102", "0001"), ("0f0e", "0f0g"),
      ("\"uid\"", "\"x\":1,\"uid\""), ("meta_read_key", "key"),
    ] {
      #expect(complaint("[\(Self.tag.replacing(part, with: replacement))]") == "tags.json: tag 1: \(form)")
    }
    #expect(complaint("[\(Self.tag),\(Self.tag)]") == "tags.json: tag 2: 04DE5F1EACC040 is there twice")
    #expect(complaint("{}") == "tags.json: expected an array of at most 256 tags")
    #expect(complaint("[") == "tags.json: not JSON at byte 1: expected a value")
    #expect(complaint("[]") == nil)
  }

  @Test("what is rendered reads the same, and a tag that is set again takes its own place")
  func tagRoundTrip() throws {
    var file = try TagKeyFile(parsing: Array("[\(Self.tag)]".utf8), path: "tags.json")
    let keys = DynamicTag.Keys(metaRead: Array(1...16), fileRead: Array(2...17))!
    file.set(.init(uid: TagUID("04A1B2C3D4E5F6")!, step: Sample.right, keys: keys))
    file.set(.init(uid: TagUID("04DE5F1EACC040")!, step: Sample.right, keys: keys))
    #expect(file.tags.count == 2)
    #expect(try TagKeyFile(parsing: Array(file.render().utf8), path: "tags.json") == file)
    #expect(TagKeyFile(path: "x").render() == "[]\n")
  }
}
