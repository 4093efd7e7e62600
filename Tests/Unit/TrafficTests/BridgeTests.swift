import Domain
import Encoding
import Geography
import Testing
import Traffic

@testable import TrafficBridge

@Suite("Bridge") struct BridgeTests {
  private let here = Coordinate(latitude: 48.7758, longitude: 9.1829)!

  private func frame(_ section: String, _ second: Int64 = 0, objects: Int = 1) -> FeedFrame {
    let objects = (0..<objects).map { index in
      RoadObject(
        id: "\(index)", category: .car,
        position: Coordinate(latitude: here.latitude + Double(index) * 1e-4, longitude: here.longitude)!,
        velocity: Vector(x: 1, y: 2), heading: 3, length: 4.5, width: nil)
    }
    return FeedFrame(
      section: section, time: UnixTime(microseconds: 1_700_000_000_040_000 + second * 1_000_000), objects: objects)
  }

  private func location(_ radius: Double? = nil, at place: Coordinate? = nil) -> ClientLocation {
    ClientLocation(time: 1_700_000_000.25, position: place ?? here, accuracy: 5, radius: radius)
  }

  private func next(_ bridge: Bridge, _ client: inout Bridge.Client, _ now: Double) throws -> FeedFrame? {
    var outgoing = OutgoingFrame(space: 3)
    guard bridge.write(for: &client, now: now, to: &outgoing) != nil else { return nil }
    #expect(outgoing.withPayload { Int32($1) } == outgoing.bytes.count - 3)
    return try FeedFrame(parsing: Array(outgoing.bytes.dropFirst(3)))
  }

  @Test("a client gets what was published, with four stamps, from its first place on")
  func passesOn() throws {
    var bridge = Bridge(map: nil)
    var client = Bridge.Client(allowed: nil)
    let now = 1_700_000_000.5
    bridge.take(frame("S1"), at: now)
    #expect(!bridge.hasNews(for: &client, now: now))
    #expect(bridge.place(&client, at: location(), now: now + 0.1))
    #expect(bridge.hasNews(for: &client, now: now + 0.1))
    var expected = frame("S1")
    expected.bridge = BridgeStamps(
      received: now, sent: now + 0.2, echo: 1_700_000_000.25, echoReceived: now + 0.1)
    #expect(try next(bridge, &client, now + 0.2) == expected)
    // Once.
    #expect(try next(bridge, &client, now + 0.3) == nil)
  }

  @Test("clients whose frames are written one after another get what is theirs, and nothing of another's")
  func shares() throws {
    var bridge = Bridge(map: nil)
    var clients = (0..<4).map { _ in Bridge.Client(allowed: nil) }
    for index in clients.indices {
      var own = location(index == 1 ? 10 : nil)
      own.time += Double(index * 100_000_000)
      #expect(bridge.place(&clients[index], at: own, now: 100))
    }
    var outgoing = OutgoingFrame(space: 3)
    for second in 1...3 {
      bridge.take(frame("S1", Int64(second), objects: 3), at: 100)
      for index in clients.indices {
        let sent = 100 + Double(index) / 10
        #expect(bridge.write(for: &clients[index], now: sent, to: &outgoing) == false)
        let got = try FeedFrame(parsing: Array(outgoing.bytes.dropFirst(3)))
        #expect(got.objects.count == (index == 1 ? 1 : 3) && got.time == frame("S1", Int64(second)).time)
        #expect(got.bridge?.sent == sent && got.bridge?.echo == 1_700_000_000.25 + Double(index * 100_000_000))
      }
    }
  }

  @Test("no place is older than 5 s, no frame older than 1 s")
  func ends() throws {
    var bridge = Bridge(map: nil)
    var client = Bridge.Client(allowed: nil)
    #expect(bridge.place(&client, at: location(), now: 100))
    bridge.take(frame("S1"), at: 104.9)
    #expect(bridge.hasNews(for: &client, now: 105) && !bridge.hasNews(for: &client, now: 105.1))
    // A clock that was set back.
    #expect(!bridge.hasNews(for: &client, now: 99))
    #expect(bridge.place(&client, at: location(), now: 106))
    #expect(try next(bridge, &client, 106) == nil)
    bridge.take(frame("S1", 1), at: 106.1)
    #expect(try next(bridge, &client, 106.2)?.time == frame("S1", 1).time)
    // What it missed while it got nothing, it was not too slow for.
    #expect(client.dropped == 0)
  }

  @Test("a slow client gets the newest frame of each section, and each section has its turn")
  func newest() throws {
    var bridge = Bridge(map: nil)
    var client = Bridge.Client(allowed: nil)
    #expect(bridge.place(&client, at: location(), now: 100))
    bridge.take(frame("S1", 0), at: 100)
    #expect(try next(bridge, &client, 100)?.section == "S1")
    for second in 1...5 { bridge.take(frame("S1", Int64(second)), at: 100) }
    bridge.take(frame("S2", 9), at: 100)
    bridge.take(frame("S1", 6), at: 100)
    let sections = try [next(bridge, &client, 100), next(bridge, &client, 100), next(bridge, &client, 100)]
    #expect(sections.map { $0?.section } == ["S2", "S1", nil])
    #expect(sections[1]?.time == frame("S1", 6).time)
    #expect(client.dropped == 5)
  }

  @Test("of a radius there is what is within it, and a frame for nothing")
  func radius() throws {
    var bridge = Bridge(map: nil)
    // 11.1 m from each to the next.
    bridge.take(frame("S1", objects: 30), at: 100)
    for (radius, count) in [(10.0, 1), (50, 5), (1000, 30)] {
      var client = Bridge.Client(allowed: nil)
      #expect(bridge.place(&client, at: location(radius), now: 100))
      #expect(try next(bridge, &client, 100)?.objects.count == count)
    }
    var client = Bridge.Client(allowed: nil)
    let elsewhere = Coordinate(latitude: 48, longitude: 9)
    #expect(bridge.place(&client, at: location(10, at: elsewhere), now: 100))
    #expect(try next(bridge, &client, 100)?.objects == [])
  }

  @Test("what the bridge takes, its clients can read: the fastest object, and no longer frame than they take")
  func readable() throws {
    var bridge = Bridge(map: nil)
    var client = Bridge.Client(allowed: nil)
    #expect(bridge.place(&client, at: location(), now: 100))
    for (x, y) in [(70.710678, 70.710678), (-70.710678, 70.710678), (100, 0), (35.2, 93.59999), (99.9995, 0.31)] {
      var fast = frame("S1")
      fast.objects[0].velocity = Vector(x: x, y: y)
      // As the publisher may write it.
      #expect(fast.objects[0].velocity.length <= 100)
      let isTaken = bridge.take(fast, at: 100)
      #expect(isTaken)
      let got = try #require(try next(bridge, &client, 100)?.objects.first)
      #expect((got.velocity - Vector(x: x, y: y)).length < 0.01)
    }
    // What a publisher writes as one byte may be six to write.
    for (count, fits) in [(1000, true), (2000, false)] {
      var long = frame("S2", objects: 1)
      long.objects[0].scenarios.laneChangeLeft = true
      long.objects[0].scenarios.laneChangeRight = true
      long.objects = (0..<count).map { index in
        var object = long.objects[0]
        object.id = String(repeating: "\u{7f}", count: 60) + "\(1000 + index)"
        return object
      }
      let isTaken = bridge.take(long, at: 100)
      #expect(isTaken == fits)
    }
    #expect(try next(bridge, &client, 100)?.objects.count == 1000)
    #expect(try next(bridge, &client, 100) == nil)
  }

  @Test("a certificate's sections are all that its holder gets")
  func sections() throws {
    var bridge = Bridge(map: nil)
    var client = Bridge.Client(allowed: ["S2"])
    #expect(bridge.place(&client, at: location(), now: 100))
    bridge.take(frame("S1"), at: 100)
    bridge.take(frame("S2"), at: 100)
    #expect(try next(bridge, &client, 100)?.section == "S2")
    #expect(try next(bridge, &client, 100) == nil)
  }

  @Test("more than ten places a second are too many, and a clock that jumps changes nothing")
  func rate() {
    let bridge = Bridge(map: nil)
    var client = Bridge.Client(allowed: nil)
    for step in 0..<200 { #expect(bridge.place(&client, at: location(), now: 100 + Double(step) / 10)) }
    let often = (0..<40).map { bridge.place(&client, at: location(), now: 120 + Double($0) / 100) }
    #expect(often.contains(false) && often.prefix(20).allSatisfy { $0 })
    #expect(!bridge.place(&client, at: location(), now: 50))
  }

  @Test("a name says what its holder may do")
  func roles() {
    #expect(BridgeRole(commonName: "publisher:S1,S2") == .publisher(["S1", "S2"]))
    #expect(BridgeRole(commonName: "client") == .client(nil))
    #expect(BridgeRole(commonName: "client:S40-50") == .client(["S40-50"]))
    let others = [
      "", "publisher", "publisher:", "publisher:,", "client:", "client:S1,", "Client", "admin", "client,S1",
    ]
    for name in others {
      #expect(BridgeRole(commonName: name) == nil, "\(name)")
    }
    let publisher = BridgeRole.publisher(["S1"])
    #expect(publisher.place(at: "/publish/S1") == .publisher(of: "S1"))
    for path in ["/publish/S2", "/publish/S1/", "/publish/", "/publish/s1", "/traffic", "publish/S1", "//publish/S1"] {
      #expect(publisher.place(at: path) == nil, "\(path)")
    }
    #expect(BridgeRole.client(["S1"]).place(at: "/traffic") == .client(["S1"]))
    #expect(BridgeRole.client(nil).place(at: "/publish/S1") == nil)
  }

  // MARK: - Map

  /// Sections of 1 km, one after the other to the north, and one that begins where the second ends.
  private var map: RoadMap {
    func end(_ north: Double, _ east: Double) -> Coordinate {
      LocalPlane(at: here).place(of: Vector(x: north, y: east))!
    }
    return RoadMap([
      .init(name: "S1", from: end(0, 0), to: end(1000, 0)), .init(name: "S2", from: end(1010, 0), to: end(2000, 0)),
      .init(name: "S3", from: end(2000, 0), to: end(3000, 0)),
      .init(name: "branch", from: end(2000, 10), to: end(2500, 700)),
    ])
  }

  @Test(
    "the section that is near, and those that join it",
    arguments: [
      (500.0, 0.0, nil, ["S1", "S2"]), (1500, 20, nil, ["S1", "S2", "S3", "branch"]),
      (2900, 0, nil, ["S2", "S3", "branch"]), (500, 499, nil, ["S1", "S2"]), (500, 501, nil, []),
      (500, 0, 100.0, ["S1"]), (1000, 0, 100, ["S1", "S2"]), (500, 120, 100, ["S1"]), (500, 140, 100, []),
      (2000, 0, 1000, ["S1", "S2", "S3", "branch"]),
    ] as [(Double, Double, Double?, [String])])
  func sectionsOfMap(north: Double, east: Double, radius: Double?, expected: [String]) throws {
    let place = try #require(LocalPlane(at: here).place(of: Vector(x: north, y: east)))
    #expect(map.sections(at: place, radius: radius) == Set(expected))
  }

  @Test("a map is read, and what is none is refused")
  func reads() throws {
    func read(_ text: String) throws(FeedFlaw) -> RoadMap { try RoadMap(parsing: Array(text.utf8)) }
    let ends = #""from":{"latitude":48.7758,"longitude":9.1829},"to":{"latitude":"48.78","longitude":9.1829}"#
    let to = try #require(Coordinate(latitude: 48.78, longitude: 9.1829))
    #expect(
      try read(#"{"sections":[{"section":"S1",\#(ends)}]}"#) == RoadMap([.init(name: "S1", from: here, to: to)]))
    for (text, place) in [
      ("[]", "map"), ("{}", "map.sections"), (#"{"sections":[]}"#, "map.sections"),
      (#"{"sections":[{"section":"S1"}]}"#, "map.sections[0].from"),
      (#"{"sections":[{"section":"S1",\#(ends)},{"section":"S1",\#(ends)}]}"#, "map.sections[1].section"),
      (#"{"sections":[{"section":"S1",\#(ends)}],"sections":[]}"#, "map"),
      (#"{"sections":[{"section":"S1",\#(ends.replacing("48.7758", with: "91"))}]}"#, "map.sections[0].from.latitude"),
    ] {
      let error = #expect(throws: FeedFlaw.self) { try read(text) }
      #expect(error?.place == place, "\(text)")
    }
  }
}
