import Domain
import Encoding
import Geography
import Testing
import Traffic

@testable import Evaluation

@Suite("Feed") struct FeedTests {
  static let frame = """
    {"id":"7","section":"S40-50","timestampSecs":"1700000000","timestampNsecs":"40000000",
     "timestampFull":"1700000000.40000000","vehicles":[
      {"id":"a","category":"bicycle","position":{"x":48.7758,"y":"9.1829","z":0},
       "speed":{"x":4.2,"y":-1,"z":"6.1"},"shape":{"length":1.8,"width":0,"height":0},
       "scenarios":{"wrongWay":true,"tailGateLevel":"2","standing":false,"new":1}},
      {"id":12,"category":"tram","position":{"x":48.7759,"y":9.183,"z":0},
       "speed":{"x":0,"y":0,"z":6.2832},"shape":{"length":30,"width":2.5,"height":3}}],
     "bridge":{"received":1700000000.05,"sent":1700000000.051,"echo":1,"echoReceived":"2.5"}}
    """

  static func parse(_ text: String, axes: FeedFrame.Axes = .latlon) throws -> FeedFrame {
    try FeedFrame(parsing: Array(text.utf8), axes: axes)
  }

  @Test("a frame is read, whether its numbers are numbers or text")
  func reads() throws {
    let frame = try Self.parse(Self.frame)
    #expect(frame.section == "S40-50")
    // The time as the publisher wrote it in one text would be 0.36 s later.
    #expect(frame.time == UnixTime(microseconds: 1_700_000_000_040_000))
    #expect(frame.objects.map(\.id) == ["a", "12"])
    let bicycle = frame.objects[0]
    #expect(bicycle.category == .bicycle)
    #expect(bicycle.position == Coordinate(latitude: 48.7758, longitude: 9.1829))
    #expect(bicycle.velocity == Vector(x: 4.2, y: -1))
    #expect(bicycle.heading == 6.1)
    #expect(bicycle.length == 1.8)
    #expect(bicycle.width == nil)
    #expect(bicycle.scenarios.tailGateLevel == 2)
    #expect(bicycle.scenarios.mostSerious == .wrongWay)
    #expect(frame.objects[1].category == .other)
    #expect(frame.objects[1].heading < 0.0001)
    #expect(frame.objects[1].scenarios.mostSerious == nil)
    #expect(
      frame.bridge == BridgeStamps(received: 1_700_000_000.05, sent: 1_700_000_000.051, echo: 1, echoReceived: 2.5))
  }

  @Test("what is written is read")
  func writes() throws {
    // Rounded to millimetres once, it stays as it is.
    let frame = try FeedFrame(parsing: Self.parse(Self.frame).json.bytes)
    #expect(try FeedFrame(parsing: frame.json.bytes) == frame)
    let location = ClientLocation(
      time: 1.5, position: try #require(Coordinate(latitude: 1, longitude: 2)), accuracy: 3, course: -1, speed: 4,
      speedAccuracy: 5, radius: 200)
    #expect(try ClientLocation(parsing: location.json.bytes) == location)
    let recorded = RecordedFrame(received: UnixTime(microseconds: 1_700_000_000_123_456), frame: frame)
    #expect(try RecordedFrame(parsing: recorded.json.bytes) == recorded)
  }

  @Test("of several scenarios the most serious one counts")
  func scenarios() throws {
    var scenarios = RoadObject.Scenarios()
    var kinds: [RoadObject.Scenarios.Kind?] = []
    for path in [\RoadObject.Scenarios.cutInLeft, \.speeding, \.standing, \.wrongWay] {
      scenarios[keyPath: path] = true
      kinds.append(scenarios.mostSerious)
      scenarios.tailGateLevel = kinds.count > 1 ? 1 : 0
    }
    #expect(kinds == [.laneChange, .speeding, .standing, .wrongWay])
  }

  @Test("axes say which number is the latitude")
  func axes() throws {
    let frame = try Self.parse(Self.frame, axes: .lonlat)
    #expect(frame.objects[0].position == Coordinate(latitude: 9.1829, longitude: 48.7758))
  }

  /// What is replaced by what, and the place that the error names.
  static let flaws = [
    ("\"x\":4.2", "\"x\":4.2,\"x\":4.2", "frame"),
    ("\"x\":4.2", "\"x\":1e999", "vehicles[0].speed.x"),
    ("\"x\":4.2", "\"x\":\"NaN\"", "vehicles[0].speed.x"),
    ("\"x\":4.2", "\"x\":\" 4\"", "vehicles[0].speed.x"),
    ("\"x\":4.2", "\"x\":\"0x4\"", "vehicles[0].speed.x"),
    ("\"x\":4.2", "\"x\":100.5", "vehicles[0].speed.x"),
    ("\"x\":4.2,\"y\":-1", "\"x\":90,\"y\":90", "vehicles[0].speed"),
    ("\"x\":4.2", "\"x\":NaN", "frame"),
    ("\"x\":4.2,", "", "vehicles[0].speed.x"),
    ("\"z\":\"6.1\"", "\"z\":7", "vehicles[0].speed.z"),
    ("\"x\":48.7758", "\"x\":90.1", "vehicles[0].position"),
    ("\"x\":48.7758", "\"x\":null", "vehicles[0].position.x"),
    ("\"length\":1.8", "\"length\":-1", "vehicles[0].shape.length"),
    ("\"id\":12", "\"id\":\"a\"", "vehicles[1].id"),
    ("\"id\":12", "\"id\":\"\"", "vehicles[1].id"),
    ("\"id\":12", "\"id\":1.5", "vehicles[1].id"),
    ("\"tailGateLevel\":\"2\"", "\"tailGateLevel\":4", "vehicles[0].scenarios.tailGateLevel"),
    ("\"wrongWay\":true", "\"wrongWay\":1", "vehicles[0].scenarios.wrongWay"),
    ("\"timestampNsecs\":\"40000000\"", "\"timestampNsecs\":\"1000000000\"", "frame.timestampNsecs"),
    ("\"timestampSecs\":\"1700000000\"", "\"timestampSecs\":-1", "frame.timestampSecs"),
    ("\"echo\":1", "\"echo\":-1", "bridge.echo"),
    ("\"section\":\"S40-50\",", "", "frame.section"),
    ("bicycle", "bi\u{1}cycle", "frame"),
  ]

  @Test("an error says where the frame is not as it has to be", arguments: flaws)
  func refuses(part: String, replacement: String, place: String) throws {
    let text = Self.frame.replacing(part, with: replacement, maxReplacements: 1)
    try #require(text != Self.frame)
    let error = #expect(throws: FeedFlaw.self) { _ = try Self.parse(text) }
    #expect(error?.place == place)
    #expect(error?.exitStatus == .badData)
  }

  @Test("bytes that are no UTF-8, and too many objects or bytes, are refused")
  func limits() throws {
    #expect(throws: FeedFlaw.self) { try FeedFrame(parsing: [0x7B, 0x22, 0xFF, 0x22, 0x3A, 0x31, 0x7D]) }
    let object = try Self.parse(Self.frame).objects[0]
    var frame = try Self.parse(Self.frame)
    frame.objects = (0..<2000).map { index in
      var object = object
      object.id = "\(index)"
      return object
    }
    #expect(try FeedFrame(parsing: frame.json.bytes).objects.count == 2000)
    frame.objects.append(object)
    #expect(throws: FeedFlaw.self) { try FeedFrame(parsing: frame.json.bytes) }
    #expect(throws: FeedFlaw.self) {
      try FeedFrame(parsing: Array(Self.frame.utf8) + [UInt8](repeating: 0x20, count: 1 << 20))
    }
  }

  @Test("a radius is 10 to 1000 m, or missing")
  func radius() throws {
    func location(_ radius: String) throws -> ClientLocation {
      try ClientLocation(
        parsing: Array(
          """
          {"timestamp":1,"locationAccuracy":5,"course":-1,"speed":-1,"speedAccuracy":-1,"longitude":9,"latitude":48\(radius)}
          """.utf8))
    }
    #expect(try location("").radius == nil)
    #expect(try location(",\"radius\":10").radius == 10)
    for radius in ["9.9", "1001", "null", "\"many\""] {
      #expect(throws: FeedFlaw.self) { _ = try location(",\"radius\":\(radius)") }
    }
  }
}

@Suite("Clock offset") struct ClockOffsetTests {
  /// A frame that answers what was sent at `time`, over ways of these lengths, by a clock that is ahead.
  func stamps(_ time: Double, there: Double, back: Double, ahead: Double) -> (BridgeStamps, Double) {
    let arrival = time + there + 0.01 + back
    return (
      BridgeStamps(
        received: 0, sent: time + there + 0.01 + ahead, echo: time, echoReceived: time + there + ahead), arrival
    )
  }

  @Test("the quickest exchange of the last minute counts")
  func quickest() throws {
    var clock = ClockOffset()
    #expect(clock.estimate == nil)
    for (time, there, back) in [(100.0, 0.02, 0.3), (101, 0.01, 0.012), (102, 0.5, 0.01)] {
      let (stamps, arrival) = stamps(time, there: there, back: back, ahead: 7)
      clock.take(stamps, at: arrival)
    }
    let estimate = try #require(clock.estimate)
    #expect(abs(estimate.offset - 7) <= estimate.uncertainty)
    #expect(abs(estimate.uncertainty - 0.011) < 1e-6)
    // A minute later it has been forgotten.
    let (stamps, arrival) = stamps(170, there: 0.2, back: 0.2, ahead: 7)
    clock.take(stamps, at: arrival)
    #expect(abs(try #require(clock.estimate).uncertainty - 0.2) < 1e-6)
  }

  @Test("a clock that is set is measured anew", arguments: [-2.0, 2])
  func stepped(by step: Double) throws {
    var clock = ClockOffset()
    let (before, earlier) = stamps(100, there: 0.01, back: 0.01, ahead: 0)
    clock.take(before, at: earlier)
    let (after, later) = stamps(101, there: 0.05, back: 0.05, ahead: step)
    clock.take(after, at: later)
    #expect(abs(try #require(clock.estimate).offset - step) < 1e-6)
  }

  @Test("stamps that cannot be are left out")
  func impossible() {
    var clock = ClockOffset()
    clock.take(BridgeStamps(received: 0, sent: 200, echo: 100, echoReceived: 100), at: 101)
    clock.take(BridgeStamps(received: 0, sent: 200), at: 101)
    #expect(clock.estimate == nil)
  }
}

@Suite("Delay statistics") struct DelayTests {
  @Test("stamps of whole seconds are told")
  func wholeSeconds() throws {
    let whole = (0..<10).map { (arrival: Double($0) + 0.3, stamp: Double($0)) }
    #expect(try #require(DelayStatistics(whole)).hasWholeSeconds)
    let fine = (0..<10).map { (arrival: Double($0) + 0.3, stamp: Double($0) + ($0 == 7 ? 0.1 : 0)) }
    #expect(try !#require(DelayStatistics(fine)).hasWholeSeconds)
  }

  @Test("percentiles lie between the nearest ranks")
  func percentiles() throws {
    // Delays of 0 to 10 ms, each once, in no order.
    let frames = (0..<11).map { index in
      let stamp = 1000 + Double(index) * 0.04
      return (arrival: stamp + Double(index * 7 % 11) / 1000, stamp: stamp)
    }
    let delay = try #require(DelayStatistics(frames))
    #expect(abs(delay.median - 0.005) < 1e-6)
    #expect(abs(delay.p95 - 0.0095) < 1e-6)
    #expect(abs(delay.p99 - 0.0099) < 1e-6)
  }

  @Test("jitter, gaps and drops of a known series")
  func series() throws {
    // 25 Hz, delays of 100 and 110 ms in turn, a second without frames.
    let frames = (0..<200).filter { !(100..<125).contains($0) }.map { index in
      let stamp = 1000 + Double(index) * 0.04
      return (arrival: stamp + (index % 2 == 0 ? 0.1 : 0.11), stamp: stamp)
    }
    let delay = try #require(DelayStatistics(frames))
    #expect(delay.count == 175)
    #expect(abs(delay.least - 0.1) < 1e-6)
    #expect(abs(delay.most - 0.11) < 1e-6)
    #expect(abs(delay.jitter - 0.01) < 1e-3)
    #expect(delay.gaps == 1)
    #expect(abs(delay.longestGap - 1.04) < 1e-6)
    #expect(delay.dropped == 25)
    #expect(delay.histogram.counts.reduce(0, +) == 175)
    #expect(try #require(delay.slope).p > 0.5)
  }

  @Test("gaps and drops are those of each section, and a frame that comes early makes up for none")
  func sections() throws {
    // Two sections of 25 Hz a few milliseconds apart; the second one misses a second. Their stamps jitter.
    var frames: [(arrival: Double, stamp: Double)] = []
    var sections: [String] = []
    for index in 0..<200 {
      for (section, shift) in [("S1", 0.0), ("S2", 0.003)] where section == "S1" || !(100..<125).contains(index) {
        let stamp = 1000 + Double(index) * 0.04 + shift + (index % 7 == 2 ? 0.03 : 0)
        frames.append((stamp + (section == "S1" ? 0.1 : 0.3), stamp))
        sections.append(section)
      }
    }
    let delay = try #require(DelayStatistics(frames, of: sections))
    #expect(delay.count == 375 && delay.gaps == 1 && delay.dropped == 25)
    #expect(abs(delay.longestGap - 1.04) < 0.04)
    // Each section's delay is always the same.
    #expect(delay.jitter < 1e-6)
  }

  @Test("a delay that grows is told from one that does not")
  func slope() throws {
    var frames: [(arrival: Double, stamp: Double)] = []
    for index in 0..<500 {
      let stamp = Double(index) * 0.04
      frames.append((stamp + 0.1 + stamp * 0.002 + Double(index * 7919 % 100) / 10_000, stamp))
    }
    let slope = try #require(DelayStatistics(frames)?.slope)
    #expect(abs(slope.value - 0.002) < 2e-4)
    #expect(slope.p < 1e-6)
  }

  @Test("stamps that were cut to whole seconds add half a second, with a deviation of 0.29 s")
  func truncated() throws {
    let frames = (0..<2500).map { index in
      let stamp = 1000 + Double(index) * 0.04
      return (arrival: stamp + 0.165, stamp: stamp.rounded(.down))
    }
    let delay = try #require(DelayStatistics(frames))
    #expect(abs(delay.mean - 0.645) < 0.01)
    #expect(abs(delay.deviation - 0.2886) < 0.001)
  }

  @Test("a delay in metres")
  func metres() {
    let distances = [0.128, 0.665, 1.362].map { DelayStatistics.distance(at: 200, within: $0) }
    #expect(distances.map { ($0 * 100).rounded() / 100 } == [7.11, 36.94, 75.67])
  }

  @Test("series that say nothing have no statistics, and odd ones do not end the program")
  func odd() {
    #expect(DelayStatistics([]) == nil)
    #expect(DelayStatistics([(1, 1)]) == nil)
    #expect(DelayStatistics([(1, 1), (1, 1)])?.slope == nil)
    #expect(DelayStatistics([(arrival: 0, stamp: 4e9), (4e9, 0), (1, 1)]) != nil)
  }
}
