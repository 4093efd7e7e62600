import Domain
import Geography
import Operator
import Positioning
import StepController
import StepdConfiguration
import TestSupport
import Testing
import Traffic
import TrafficFeed

@Suite("the guard in controller files")
struct GuardFileTests {
  private static let fixed = """
    [guard]
    feed = "wss://bridge.example/traffic"
    place = "fixed"
    latitude = 48.7758
    longitude = 9.1829
    heading_deg = 90
    length_m = 4.6
    width_m = 1.9
    [guard.steps.left]
    from_m = 1.6
    to_m = 2.6
    reach_m = 0.4
    [guard.steps.right]
    from_m = 1.6
    to_m = 2.6
    reach_m = 0.4

    """
  private static let line = Sample.controller.split(separator: "\n", omittingEmptySubsequences: false).count

  private func read(_ text: String) throws -> ControllerFile {
    try ControllerFile(parsing: Array((Sample.controller + text).utf8), path: "car/stepd.toml")
  }

  @Test("a guard is read, with what may be left out")
  func whole() throws {
    let span = ControllerFile.StepSpan(from: 1.6, to: 2.6, reach: 0.4)
    let here = try #require(Coordinate(latitude: 48.7758, longitude: 9.1829))
    #expect(
      try read(Self.fixed).trafficGuard
        == .init(
          feed: .init(
            address: .bridge(host: "bridge.example", port: 443, path: "/traffic"),
            credentials: .init(authorities: nil, certificate: nil, key: nil), radius: 300, axes: .latlon),
          source: .given(here, error: 0.25, heading: .pi / 2), length: 4.6, width: 1.9,
          steps: [Sample.left: span, Sample.right: span]))
    #expect(try read("").trafficGuard == nil)
    let more = Self.fixed.replacing(
      "wss://bridge.example/traffic\"",
      with: """
        file:road.jsonl"
        ca = "ca.pem"
        cert = "c.pem"
        key = "c.key"
        radius_m = 120.5
        axes = "lonlat"
        blind = "refuse"
        error_m = 0.5
        """)
    let file = try #require(try read(more).trafficGuard)
    #expect(file.feed.address == .recording("car/road.jsonl") && file.refusesBlind && file.feed.axes == .lonlat)
    #expect(file.feed.credentials == .init(authorities: "car/ca.pem", certificate: "car/c.pem", key: "car/c.key"))
    #expect(file.feed.radius == 120.5 && file.source == .given(here, error: 0.5, heading: .pi / 2))
  }

  @Test("the place is gpsd's, or that of the vehicle's box near it or near a place that is known roughly")
  func places() throws {
    func guardOf(_ keys: String) throws -> ControllerFile.Guard? {
      let lines = Self.fixed.split(separator: "\n", omittingEmptySubsequences: false)
      let rest = lines.filter { !["place", "latitude", "longitude", "heading"].contains(where: $0.hasPrefix) }
      return try read(rest.joined(separator: "\n").replacing("length_m", with: "\(keys)\nlength_m")).trafficGuard
    }
    let plain = try guardOf("place = \"gpsd\"")
    #expect(plain?.receiver == .init(host: "localhost", port: 2947) && plain?.source == .receiver(heading: nil))
    let known = try guardOf("place = \"gpsd\"\ngpsd = \"[::1]:2948\"\nheading_deg = 180")
    #expect(known?.receiver == .init(host: "::1", port: 2948) && known?.source == .receiver(heading: .pi))
    let found = try guardOf("place = \"feed\"\ngpsd = \"localhost:2947\"")
    #expect(found?.isInFeed == true && found?.source == .receiver(heading: nil))
    let near = try guardOf("place = \"feed\"\nlatitude = 1\nlongitude = 2")
    #expect(
      near?.isInFeed == true && near?.source == .given(Coordinate(latitude: 1, longitude: 2)!, error: 10, heading: 0))
  }

  @Test("what is rendered reads the same")
  func rendered() throws {
    for text in [
      Self.fixed, Self.fixed.replacing("place = \"fixed\"", with: "place = \"fixed\"\nblind = \"refuse\"\nerror_m = 1"),
      Self.fixed.replacing("heading_deg = 90\n", with: "").replacing("\"fixed\"", with: "\"feed\""),
      Self.fixed.replacing("latitude = 48.7758\nlongitude = 9.1829\n", with: "").replacing(
        "\"fixed\"", with: "\"gpsd\""),
    ] {
      // Paths of a value that is rendered are relative to its file.
      var file = try ControllerFile(parsing: Array((Sample.controller + text).utf8), path: "stepd.toml")
      let again = try ControllerFile(parsing: Array(file.render().utf8), path: "stepd.toml")
      #expect(again == file)
      file.trafficGuard = nil
      #expect(again != file)
    }
  }

  @Test(
    "a mistake is named",
    arguments: [
      ("wss://", "ws://", 1, "[guard] feed: anybody on the way can change what ws:// carries: use wss://"),
      ("wss://bridge.example/traffic", "x", 1, "[guard] feed: a feed is wss://HOST[:PORT]/PATH or file:RECORDING"),
      ("\"fixed\"", "\"here\"", 2, "[guard] place: expected \"fixed\", \"gpsd\" or \"feed\", found \"here\""),
      ("place = \"fixed\"\n", "", 0, "[guard] place is missing"),
      ("48.7758", "95", 3, "[guard] latitude: expected a number from -90 to 90, found 95"),
      ("latitude = 48.7758\n", "", 0, "[guard] latitude is missing"),
      ("heading_deg = 90\n", "", 0, "[guard] heading_deg is missing"),
      ("\"fixed\"", "\"feed\"", 5, "[guard] heading_deg: the feed says where the vehicle points to"),
      ("\"fixed\"", "\"gpsd\"", 3, "[guard] latitude: gpsd says where the vehicle is"),
      ("\"fixed\"", "\"fixed\"\ngpsd = \"a:1\"", 3, "[guard] gpsd: is not used with place = \"fixed\""),
      ("\"fixed\"", "\"gpsd\"\ngpsd = \"a:b\"", 3, "[guard] gpsd: expected HOST[:PORT], found \"a:b\""),
      ("4.6", "0", 6, "[guard] length_m: expected a number from 1 to 30, found 0"),
      ("to_m = 2.6", "to_m = 1.6", 10, "[guard.steps.left] to_m: 1.6 is not more than from_m"),
      ("to_m = 2.6", "to_m = 5", 10, "[guard.steps.left] to_m: expected a number from 0 to 4.6, found 5"),
      ("reach_m = 0.4", "reach_m = 3", 11, "[guard.steps.left] reach_m: expected a number from 0.05 to 2, found 3"),
      ("traffic\"", "traffic\"\ncert = \"a\"", 0, "[guard] key is missing"),
      (
        "traffic\"", "traffic\"\nblind = \"maybe\"", 2,
        "[guard] blind: expected \"allow\" or \"refuse\", found \"maybe\""
      ),
      ("traffic\"", "traffic\"\nradius_m = 5", 2, "[guard] radius_m: expected a number from 10 to 1000, found 5"),
      ("traffic\"", "traffic\"\naxis = 5", 2, "[guard] axis: unknown key, did you mean \"axes\"?"),
    ])
  func mistakes(part: String, replacement: String, line: Int, expected: String) throws {
    try #require(Self.fixed.contains(part))
    let text = Self.fixed.replacing(part, with: replacement, maxReplacements: 1)
    let found = try #require(complaint { _ = try read(text) })
    #expect(found == "car/stepd.toml:\(Self.line + line): \(expected)")
  }

  @Test("each step has a span, and each span a step, and nobody else may read the key")
  func steps() throws {
    let folder = try TemporaryFolder()
    try folder.write("vehicle.toml", Sample.vehicle)
    try folder.write("stepd.key")
    func setup(_ text: String) throws -> ControllerSetup {
      try ControllerSetup(reading: folder.write("stepd.toml", Sample.controller + text))
    }
    let right = "[guard.steps.right]\nfrom_m = 1.6\nto_m = 2.6\nreach_m = 0.4\n"
    #expect(
      complaint { _ = try setup(Self.fixed.replacing(right, with: "")) }
        == "\(folder.path)/stepd.toml:\(Self.line): [guard.steps.right] is missing: the vehicle has that step")
    #expect(
      complaint { _ = try setup(Self.fixed.replacing("steps.right", with: "steps.rear")) }?.hasSuffix(
        "[guard.steps.rear]: \(folder.path)/vehicle.toml has no such step") == true)
    try folder.write("c.key", mode: 0o644)
    let open = Self.fixed.replacing("traffic\"", with: "traffic\"\ncert = \"c.pem\"\nkey = \"c.key\"")
    #expect(complaint { _ = try setup(open) }?.contains("c.key") == true)
  }
}
