import Domain
import FileFormats
import Geography
import Glibc
import MQTT
import SystemIO
import TestSupport
import Testing

@Suite("vehicle files")
struct VehicleFileTests {
  private func read(_ text: String, path: String = "vehicle.toml") throws -> VehicleFile {
    try VehicleFile(parsing: Array(text.utf8), path: path)
  }

  @Test("a whole file is read")
  func whole() throws {
    let file = try read(Sample.vehicle)
    #expect(
      file
        == VehicleFile(
          path: "vehicle.toml", vehicle: try Sample.parsedVehicle(), topic: TopicPrefix("arena2036/rolling_chassis"),
          broker: Broker(
            "broker.example", 8884, authority: "ca.crt", .init(certificate: "rider.crt", key: "rider.key")),
          controller: .init(encryption: Sample.encryptionKey, signing: Sample.verificationKey),
          rider: .init(name: "Ada", deviceKey: "device.jwk", token: "token.jwt")))
  }

  @Test("name, UUID and steps are enough to locate oneself")
  func minimal() throws {
    let file = try read(
      """
      name = "Van"
      uuid = "5F3C1C0E-7A0B-4F57-9A55-1F0F6C1B2A90"
      steps = [{ id = "only", side = "right", major = 65535 }]
      """)
    #expect(file.vehicle.uuid == Sample.uuid)
    #expect(file.vehicle.steps == [Step(id: StepID("only")!, side: .right, major: 65535)])
    #expect(file.topic == nil && file.broker == nil && file.controller == nil && file.rider == nil)
  }

  @Test("the port is that of MQTT over TLS unless the file says another")
  func standardPort() throws {
    let file = try read(Sample.vehicle.replacing("port = 8884\n", with: ""))
    #expect(file.broker?.port == 8883)
  }

  @Test(
    "a host is told from an address with more around it",
    arguments: [
      ("[::1]", #"write host = "::1""#), ("mqtts://x", #"write host = "x""#),
      ("x:8883", #"write host = "x" and port = 8883"#),
      ("mqtts://[fe80::1]:1883/", #"write host = "fe80::1" and port = 1883"#),
      ("x:", #"write host = "broker.example", with the port in port"#),
    ])
  func hosts(host: String, hint: String) throws {
    let error = #expect(throws: ConfigurationError.self) {
      try read(Sample.vehicle.replacing("host = \"broker.example\"", with: "host = \"\(host)\""))
    }
    #expect(error?.exitStatus == .configuration)
    #expect(error?.message == "[broker] host: expected a host name or an address, found \"\(host)\"")
    #expect(error?.hint == hint)
    for good in ["::1", "fe80::1%eth0", "127.0.0.1", "my_broker", "käfer.example"] {
      #expect(
        try read(Sample.vehicle.replacing("\"broker.example\"", with: "\"\(good)\"")).broker?.host == good)
    }
  }

  @Test(
    "relative paths lead from the file's folder",
    arguments: [
      ("vehicle.toml", "ca.crt"), ("./vehicle.toml", "ca.crt"), ("cars/vehicle.toml", "cars/ca.crt"),
      ("/srv/car/vehicle.toml", "/srv/car/ca.crt"), ("/vehicle.toml", "//ca.crt"),
    ])
  func paths(path: String, ca: String) throws {
    let file = try read(Sample.vehicle.replacing("rider.key", with: "/keys/rider.key"), path: path)
    #expect(file.broker?.tls?.authority == ca)
    #expect(file.broker?.tls?.identity?.key == "/keys/rider.key")
  }

  /// Each line of the sample, replaced, and what is said about it.
  @Test(
    "a mistake is named with its line, its key, what was found and what was expected",
    arguments: [
      (
        "name = \"Rolling Chassis\"", "name = \"\"",
        "vehicle.toml:1: name: expected 1 to 128 bytes of text without control characters, found \"\""
      ),
      (
        "name = \"Rolling Chassis\"", "name = \"a\\u001b[2Jb\"",
        "vehicle.toml:1: name: expected 1 to 128 bytes of text without control characters, found \"a\\u001b[2Jb\""
      ),
      (
        "name = \"Rolling Chassis\"", "name = 1979-05-27",
        "vehicle.toml:1: name: expected 1 to 128 bytes of text without control characters, found a date or time"
      ),
      ("name = \"Rolling Chassis\"", "", "vehicle.toml: name is missing"),
      (
        "uuid = \"5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90\"", "uuid = \"5f3c1c0e7a0b4f579a551f0f6c1b2a90\"",
        "vehicle.toml:2: uuid: expected a UUID (8-4-4-4-12 hexadecimal digits), "
          + "found \"5f3c1c0e7a0b4f579a551f0f6c1b2a90\""
      ),
      (
        "topic = \"arena2036/rolling_chassis\"", "topic = \"cars/#\"",
        "vehicle.toml:3: topic: expected levels of letters, digits, \".\", \"-\" and \"_\", joined by \"/\", "
          + "found \"cars/#\""
      ),
      (
        "topic = \"arena2036/rolling_chassis\"", "topci = \"x\"",
        "vehicle.toml:3: topci: unknown key, did you mean \"topic\"?"
      ),
      (
        "topic = \"arena2036/rolling_chassis\"", "\"\\u001b\" = 1",
        "vehicle.toml:3: \"\\u001b\": unknown key, "
          + "expected name, uuid, operator, signed, topic, broker, controller, steps, rider or place"
      ),
      (
        "[broker]", "[bróker]",
        "vehicle.toml:5: not TOML, column 4: error while parsing table header: expected ']', saw 'ó'"
      ),
      ("[broker]", "[[broker]]", "vehicle.toml:5: broker: expected a table, found an array"),
      ("host = \"broker.example\"", "", "vehicle.toml:5: [broker] host is missing"),
      ("port = 8884", "port = 0", "vehicle.toml:7: [broker] port: expected an integer from 1 to 65535, found 0"),
      (
        "port = 8884", "port = 70000",
        "vehicle.toml:7: [broker] port: expected an integer from 1 to 65535, found 70000"
      ),
      (
        "port = 8884", "port = 8883.5",
        "vehicle.toml:7: [broker] port: expected an integer from 1 to 65535, found 8883.5"
      ),
      (
        "ca = \"ca.crt\"", "ca = [\"ca.crt\"]",
        "vehicle.toml:8: [broker] ca: expected the path of a file, found an array"
      ),
      (
        "ca = \"ca.crt\"", "ca = \"ca\\u0000.crt\"",
        "vehicle.toml:8: [broker] ca: expected the path of a file, found \"ca\\u0000.crt\""
      ),
      ("cert = \"rider.crt\"", "", "vehicle.toml:5: [broker] cert is missing"),
      ("key = \"rider.key\"", "", "vehicle.toml:5: [broker] key is missing"),
      (
        "signing_key = \"\(Sample.key)\"", "signing_key = \"c2VjcmV0\"",
        "vehicle.toml:14: [controller] signing_key: expected 32 bytes as base64url without padding (length 43), "
          + "found text of length 8"
      ),
      (
        "signing_key = \"\(Sample.key)\"", "signing_key = \"\(Sample.key)=\"",
        "vehicle.toml:14: [controller] signing_key: expected 32 bytes as base64url without padding (length 43), "
          + "found text of length 44"
      ),
      (
        "encryption_key = \"\(Sample.key)\"", "encryption_key = \"\(String(repeating: "A", count: 43))\"",
        "vehicle.toml:13: [controller] encryption_key: expected 32 bytes as base64url without padding (length 43), "
          + "found 32 bytes that are not a usable key"
      ),
      (
        "[[steps]]\nid = \"left\"", "[[steps]]\nid = \"Left\"",
        "vehicle.toml:17: [[steps]] id: expected 1 to 32 of a-z, 0-9, \"-\" and \"_\", found \"Left\""
      ),
      (
        "side = \"left\"", "side = \"top\"",
        "vehicle.toml:18: [[steps]] side: expected \"left\" or \"right\", found \"top\""
      ),
      (
        "side = \"left\"", "side = true",
        "vehicle.toml:18: [[steps]] side: expected \"left\" or \"right\", found true"
      ),
      (
        "side = \"left\"", "side = \"\(String(repeating: "x", count: 99))\"",
        "vehicle.toml:18: [[steps]] side: expected \"left\" or \"right\", "
          + "found \"\(String(repeating: "x", count: 40))\"…"
      ),
      ("major = 1", "mayor = 1", "vehicle.toml:19: [[steps]] mayor: unknown key, did you mean \"major\"?"),
      (
        "major = 1", "height = 1",
        "vehicle.toml:19: [[steps]] height: unknown key, expected id, side, major, measured_power, minor or tags"
      ),
      ("major = 1", "", "vehicle.toml:16: [[steps]] major is missing"),
      (
        "major = 1", "major = -1",
        "vehicle.toml:19: [[steps]] major: expected an integer from 0 to 65535, found -1"
      ),
      (
        "id = \"right\"", "id = \"left\"",
        "vehicle.toml:22: [[steps]] id: \"left\" is taken by the step in line 17"
      ),
      (
        "side = \"right\"", "side = \"left\"",
        "vehicle.toml:23: [[steps]] side: \"left\" is taken by the step in line 18"
      ),
      ("major = 2", "major = 1", "vehicle.toml:24: [[steps]] major: 1 is taken by the step in line 19"),
      (
        "token = \"token.jwt\"", "tokn = \"token.jwt\"",
        "vehicle.toml:29: [rider] tokn: unknown key, did you mean \"token\"?"
      ),
    ])
  func mistakes(line: String, replacement: String, expected: String) throws {
    try #require(Sample.vehicle.contains(line))
    #expect(
      complaint { _ = try read(Sample.vehicle.replacing(line, with: replacement, maxReplacements: 1)) } == expected)
  }

  @Test(
    "steps that are not there, none, or of another form are refused",
    arguments: [
      ("", "vehicle.toml: steps is missing: a vehicle has at least one [[steps]]"),
      ("steps = []", "vehicle.toml: steps is missing: a vehicle has at least one [[steps]]"),
      ("steps = 2", "vehicle.toml:3: steps: expected [[steps]], found 2"),
      ("[steps]\nid = \"left\"", "vehicle.toml:3: steps: expected [[steps]], found a table"),
      ("steps = [1]", "vehicle.toml:3: steps: expected a table, found 1"),
    ])
  func stepForms(steps: String, expected: String) {
    let text = "name = \"Van\"\nuuid = \"\(Sample.uuid)\"\n\(steps)\n"
    #expect(complaint { _ = try read(text) } == expected)
  }

  @Test("a file that is not there, a folder and a file too large are told apart")
  func files() throws {
    let folder = try TemporaryFolder()
    #expect(
      throws: SystemError("open", "\(folder.path)/none.toml", code: ENOENT)
    ) { try VehicleFile(reading: "\(folder.path)/none.toml") }
    #expect(throws: SystemError("read", folder.path, code: EISDIR)) {
      try VehicleFile(reading: folder.path)
    }
    let large = try folder.write("large.toml", String(repeating: "#\n", count: 40_000))
    #expect(throws: ConfigurationError(large, "larger than 64 KiB")) { try VehicleFile(reading: large) }
    #expect(throws: ConfigurationError("large.toml", "larger than 64 KiB")) {
      try read(String(repeating: "#\n", count: 40_000), path: "large.toml")
    }
  }

  @Test("what is rendered reads the same, whatever the texts hold")
  func roundTrip() throws {
    var file = try read(Sample.vehicle)
    #expect(try read(file.render()) == file)
    file.vehicle = try Vehicle(
      name: #"L'élan "quoted" \u0041 ''' # = [x] 🚐 \"#, uuid: file.vehicle.uuid, steps: file.vehicle.steps.reversed())
    file.broker?.tls?.identity = nil
    file.rider = .init(name: #"""triple""" \\"#, deviceKey: "a b/ü.jwk", token: "/t\\o'k\"en")
    file.place = Coordinate(latitude: -48.7758, longitude: 9)
    #expect(try read(file.render()) == file)
    file = VehicleFile(path: "vehicle.toml", vehicle: file.vehicle)
    #expect(try read(file.render()) == file)
  }

  @Test("a folder that was moved reads as before, seen from where it is now")
  func moved() throws {
    let written = try read(Sample.vehicle)
    let folder = try TemporaryFolder()
    for name in ["here", "there/and/then"] {
      let read = try VehicleFile(reading: folder.write("\(name)/vehicle.toml", written.render()))
      #expect(read.broker?.tls?.identity?.key == "\(folder.path)/\(name)/rider.key")
      #expect(read.rider?.token == "\(folder.path)/\(name)/token.jwt")
    }
  }
}
