import Domain
import Geography
import TestSupport
import Testing
import Traffic

import func Glibc.cos
import func Glibc.sin

@testable import Evaluation

/// A street that runs north, with a vehicle that points north, too; its left side is to the west.
@Suite("Guard") struct GuardTests {
  static let here = Coordinate(latitude: 48.7758, longitude: 9.1829)!
  static let site = TrafficGuard.Site(
    position: here, heading: 0, length: 4.6, width: 1.9,
    steps: [
      .init(id: StepID("left")!, side: .left, from: 1.6, to: 2.6, reach: 0.4),
      .init(id: StepID("right")!, side: .right, from: 1.6, to: 2.6, reach: 0.4),
    ])
  static let plane = LocalPlane(at: here)
  /// Where the steps are, metres ahead of the vehicle's middle.
  static let step = 0.2

  static func object(
    _ category: RoadObject.Category = .bicycle, id: String = "a", ahead: Double, right: Double, speed: Double = 0,
    drift: Double = 0, heading: Double = 0, length: Double? = 1.8, width: Double? = 0.6
  ) -> RoadObject {
    RoadObject(
      id: id, category: category, position: plane.place(of: Vector(x: ahead, y: right))!,
      velocity: Vector(x: speed, y: drift), heading: heading, length: length, width: width)
  }

  static let own = object(.car, id: "the vehicle", ahead: 0, right: 0, length: 4.6, width: 1.9)

  /// A feed of 25 Hz that is 0.1 s late.
  struct Feed {
    var traffic = TrafficGuard(GuardTests.site)
    var time = 1000.0
    var delay = 0.1
    var clock = ClockOffset.Estimate(offset: 0, uncertainty: 0.01)

    /// The section that shows the vehicle itself, as that of its place does; nil where none does.
    var here: String? = "S1"

    /// - Parameter late: seconds by which the stamp is older than those of other frames.
    mutating func give(_ objects: [RoadObject], section: String = "S1", late: Double = 0) {
      let stamp = UnixTime(microseconds: Int64(((time - late) * 1e6).rounded()))
      let objects = section == here ? objects + [GuardTests.own] : objects
      traffic.take(FeedFrame(section: section, time: stamp, objects: objects), at: time + delay, clock: clock)
    }

    /// Frames for some time; what is in each is said by the time since the first.
    mutating func play(_ seconds: Double, _ objects: (Double) -> [RoadObject] = { _ in [] }) {
      let begin = time
      for index in 0..<Int((seconds / 0.04).rounded()) {
        time = begin + Double(index) * 0.04
        give(objects(time - begin))
      }
      time += 0.04
    }

    /// Just before the next frame comes.
    func verdict(_ side: String = "left", later: Double = 0) -> TrafficGuard.Verdict {
      traffic.verdict(for: StepID(side)!, at: time + delay - 0.001 + later)
    }
  }

  struct Bend: CustomTestStringConvertible {
    let radius: Double
    /// 1 where the bend goes to the right.
    let sign: Double
    let speed: Double
    var testDescription: String { "\(radius) m to the \(sign > 0 ? "right" : "left") at \(speed) m/s" }

    /// A bicycle 0.6 m to the left of the vehicle, this many seconds before it is at the steps.
    func object(before: Double) -> RoadObject {
      let own = radius + sign * (0.95 + 0.6 + 0.3)
      let angle = (GuardTests.step - before * speed) / own
      // The bend's centre is beside the vehicle's middle.
      let place = Vector(x: own * sin(angle), y: sign * (radius - own * cos(angle)))
      return RoadObject(
        id: "a", category: .bicycle, position: plane.place(of: place)!,
        velocity: Vector(direction: sign * angle) * speed, heading: sign * angle, length: 1.8, width: 0.6)
    }
  }

  @Test(
    "what follows a bend is seen two seconds before it comes",
    arguments: [25.0, 40, 80].flatMap { radius in
      [-1.0, 1].flatMap { sign in [4.0, 6].map { Bend(radius: radius, sign: sign, speed: $0) } }
    })
  func bend(bend: Bend) {
    var feed = Feed()
    let first = min(9, 60 / bend.speed)
    feed.play(first - 2) { [bend.object(before: first - $0)] }
    for index in 0..<50 {
      feed.play(0.04) { _ in [bend.object(before: 2 - Double(index) * 0.04)] }
      #expect(feed.verdict().holds, "\(2 - Double(index) * 0.04) s before")
    }
  }

  @Test("what has turned straight is not expected to turn on")
  func endOfBend() {
    var feed = Feed()
    func passing(_ time: Double) -> RoadObject {
      // Ten degrees within a second, and then along the opposite lane.
      let turn = max(0, 1 - time) * 0.17
      return GuardTests.object(
        .car, ahead: 40 - 8 * time, right: -0.95 - 4.2 - 0.9, speed: -8 * cos(turn), drift: 8 * sin(turn),
        heading: .pi - turn, length: 4.4, width: 1.8)
    }
    feed.play(2.2) { [passing($0)] }
    feed.play(2.5) { time in
      [passing(2.2 + time)]
    }
    #expect(feed.verdict() == .clear)
  }

  @Test("a feed that calls the same bicycle something else in each frame does not hide it", arguments: [1, 2])
  func newIDs(every: Int) {
    var feed = Feed()
    feed.play(1)
    var frame = 0
    feed.play(2) { time in
      frame += 1
      return [Self.object(id: "\(frame / every)", ahead: -25 + 5 * time, right: -1.85, speed: 5)]
    }
    for _ in 0..<50 {
      frame += 1
      let time = 2 + Double(frame - 50) * 0.04
      feed.play(0.04) { _ in [Self.object(id: "\(frame / every)", ahead: -25 + 5 * time, right: -1.85, speed: 5)] }
      if case .approaching(.bicycle, _) = feed.verdict() { continue }
      Issue.record("\(feed.verdict()) at \(time) s")
    }
  }

  @Test("one wrong position does not hide what comes", arguments: [-8.0, 8, 1e5])
  func wrongPosition(off: Double) {
    var feed = Feed()
    feed.play(1)
    func object(_ time: Double) -> RoadObject { Self.object(ahead: -25 + 5 * time, right: -1.85, speed: 5) }
    feed.play(3) { [object($0)] }
    for index in 0..<40 {
      let time = 3 + Double(index) * 0.04
      feed.play(0.04) { _ in index % 10 == 3 ? [Self.object(ahead: -25, right: off, speed: 5)] : [object(time)] }
      #expect(feed.verdict().holds, "frame \(index)")
    }
  }

  @Test("a bicycle that has another id in each frame and is missing from some is waited for")
  func newIDsAndDropouts() {
    var feed = Feed()
    feed.play(1)
    var frame = 0
    func objects(_ time: Double) -> [RoadObject] {
      frame += 1
      return frame % 4 == 0 ? [] : [Self.object(id: "\(frame)", ahead: -25 + 5 * time, right: -1.85, speed: 5)]
    }
    feed.play(2, objects)
    for index in 0..<50 {
      feed.play(0.04) { _ in objects(2 + Double(index) * 0.04) }
      #expect(feed.verdict().holds, "frame \(index)")
    }
  }

  @Test("many objects that have another id in each frame leave room for what comes")
  func newIDsOfMany() {
    var feed = Feed()
    feed.play(1)
    for index in 0..<75 {
      let time = Double(index) * 0.04
      let many = (0..<60).map {
        Self.object(.car, id: "\(index) \($0)", ahead: 20 + Double($0 % 10), right: 9 + Double($0))
      }
      feed.play(0.04) { _ in many + [Self.object(ahead: -20 + 5 * time, right: -1.85, speed: 5)] }
      if time > 1 { #expect(feed.verdict().holds, "\(feed.verdict()) at \(time) s") }
    }
  }

  @Test("two whose ids are taken for each other's now and then are followed all the same", arguments: [-1.0, 1])
  func swapped(sign: Double) {
    var feed = Feed()
    let bend = Bend(radius: 30, sign: sign, speed: 5)
    for index in 0..<200 {
      let before = 7 - Double(index) * 0.04
      let coming = bend.object(before: before)
      let other = Self.object(id: "b", ahead: -10 - 5 * before, right: 30, speed: 5)
      var shown = [coming, other]
      if index % 5 == 0 { (shown[0].id, shown[1].id) = (shown[1].id, shown[0].id) }
      feed.play(0.04) { _ in shown }
      if (0...2).contains(before) { #expect(feed.verdict().holds, "\(before) s before") }
    }
  }

  @Test("a heading across the way is none: a bus in the opposite lane does not lie across the road")
  func wrongHeading() {
    var feed = Feed()
    feed.play(1)
    for index in 0..<200 {
      let way = 8 * 0.04 * Double(index)
      feed.play(0.04) { _ in
        [
          Self.object(
            .bus, ahead: 40 - way, right: -0.95 - 4.2 - 1.25, speed: -8, heading: .pi / 2, length: 12, width: 2.5)
        ]
      }
      #expect(feed.verdict() == .clear)
    }
  }

  @Test("the vehicle's own box counts as that also where the feed is off by a metre, and a bicycle beside it does not")
  func ownBoxBeside() {
    var feed = Feed()
    feed.here = nil
    let beside = Self.object(.car, id: "own", ahead: 0, right: -1.1, length: 4.6, width: 1.9)
    feed.play(2) { _ in [beside] }
    #expect(feed.verdict() == .clear)
    feed.play(1) { _ in [beside, Self.object(id: "b", ahead: 0.2, right: -1.3)] }
    #expect(feed.verdict() == .obstructed(.bicycle))
  }

  @Test("the vehicle's own box in a recording is nothing that comes")
  func ownBoxIsScored() throws {
    // It stops 3 m before the step, which waits for it, and nothing else comes.
    let recording = (0..<1000).map { index in
      let time = UnixTime(microseconds: 1_000_000_000 + Int64(index) * 40_000)
      let way = min(Double(index) * 0.04 * 4, 100)
      let objects = [Self.own, Self.object(ahead: way - 103.7, right: -1.85, speed: way < 100 ? 4 : 0)]
      return RecordedFrame(received: time, frame: FeedFrame(section: "S1", time: time, objects: objects))
    }
    let score = try #require(GuardScene(site: Self.site).score(recording).first)
    #expect((score.approaches, score.departures) == (0, 0))
    #expect(score.held > 1 && score.needless == score.held)
  }

  @Test("what one or two frames alone show is nothing")
  func ghosts() {
    var feed = Feed()
    feed.play(1)
    for round in 0..<10 {
      feed.play(0.08) { _ in [Self.object(id: "\(round)", ahead: -10, right: -1.85, speed: 5)] }
      #expect(feed.verdict() == .clear)
      feed.play(0.2)
      #expect(feed.verdict() == .clear)
    }
  }

  struct Pass: CustomTestStringConvertible {
    let speed: Double
    let gap: Double
    let side: String
    var testDescription: String { "\(speed) km/h, \(gap) m from the body, \(side)" }
  }

  static let all = [10.0, 15, 20, 25].flatMap { speed in
    [0.3, 0.6, 1.0].flatMap { gap in ["left", "right"].map { Pass(speed: speed, gap: gap, side: $0) } }
  }

  @Test("a step waits for a bicycle that passes, from 2 s before until 0.3 s after", arguments: all)
  func passes(_ pass: Pass) {
    let speed = pass.speed / 3.6
    for phase in 0..<10 {
      var feed = Feed()
      // It is 8 s away at first.
      let begin = Self.step - 0.5 - 0.9 - 8 * speed - Double(phase) * 0.004 * speed
      let right = (pass.side == "right" ? 1 : -1) * (0.95 + pass.gap + 0.3)
      var seen: [(front: Double, verdict: TrafficGuard.Verdict)] = []
      feed.play(1) { [Self.object(ahead: begin + speed * $0, right: right, speed: speed)] }
      for _ in 0..<275 {
        let passed = feed.time - 1000
        feed.play(0.04) { _ in [Self.object(ahead: begin + speed * passed, right: right, speed: speed)] }
        // Where its front is at the moment of asking, behind the step's rear end.
        let now = feed.time + feed.delay - 0.001 - 1000
        seen.append((begin + speed * now + 0.9 - (Self.step - 0.5), feed.verdict(pass.side)))
      }
      // At 7 s it is not held; nor 0.3 s after it has left the step behind it.
      #expect(seen.allSatisfy { $0.front > -6.5 * speed || $0.verdict == .clear })
      #expect(seen.allSatisfy { $0.front < 1 + 1.8 + 0.3 * speed || $0.verdict == .clear })
      // In between it is, all the time: at 8 m and 15 km/h, and at 11 m and 20 km/h, too.
      #expect(seen.allSatisfy { !(-max(2 * speed, 8)...0 ~= $0.front) || $0.verdict.holds || speed < 4 })
      #expect(seen.allSatisfy { !(-2 * speed...0 ~= $0.front) || $0.verdict.holds })
      // The other side is free all the time.
      #expect(feed.verdict(pass.side == "left" ? "right" : "left") == .clear)
    }
  }

  @Test("what comes, and when, is told")
  func arrival() {
    var feed = Feed()
    // Its front is 8 m behind the step.
    feed.play(1) { [Self.object(ahead: Self.step - 0.5 - 0.9 - 8 - 4 * (1 - $0), right: -1.9, speed: 4)] }
    guard case .approaching(.bicycle, let seconds) = feed.verdict() else {
      Issue.record("\(feed.verdict())")
      return
    }
    #expect(1.3...2.0 ~= seconds)
  }

  @Test("the opposite lane, 4.2 m off, never holds a step", arguments: [RoadObject.Category.bicycle, .car])
  func opposite(category: RoadObject.Category) {
    let car = category == .car
    for speed in [10.0, 25, 50].map({ $0 / 3.6 }) {
      var feed = Feed()
      feed.play(0.5)
      for index in 0..<200 {
        let ahead = 5 * speed - speed * Double(index) * 0.04
        feed.play(0.04) { _ in
          [
            Self.object(
              category, ahead: ahead, right: -0.95 - 4.2, speed: -speed, heading: .pi, length: car ? 4.5 : 1.8,
              width: car ? 1.8 : 0.6)
          ]
        }
        #expect(feed.verdict() == .clear)
      }
    }
  }

  @Test("a car that is parked close behind, one across the road, and the vehicle itself change nothing")
  func parked() {
    var feed = Feed()
    feed.play(2) { _ in
      [
        Self.object(.car, id: "behind", ahead: -4.6 - 0.4, right: 0.1, length: 4.4, width: 1.8),
        Self.object(.car, id: "across", ahead: 0, right: -6, length: 4.4, width: 1.8),
        Self.object(.car, id: "own", ahead: 0.2, right: -0.2, length: 4.6, width: 1.9),
      ]
    }
    #expect(feed.verdict("left") == .clear)
    #expect(feed.verdict("right") == .clear)
  }

  /// Its front is behind the vehicle's rear, and from 2 s on it passes with 2 m/s².
  private static func leaver(behind gap: Double, at seconds: Double) -> RoadObject {
    let moving = max(0, seconds - 2)
    return object(
      .car, id: "leaver", ahead: -2.3 - gap - 2.2 + moving * moving, right: -0.95 - 0.5 - 0.9, speed: 2 * moving,
      length: 4.4, width: 1.8)
  }

  @Test("a standing car that pulls out is seen half a second after it began", arguments: [0.5, 2, 4])
  func pullsOut(behind gap: Double) {
    var feed = Feed()
    feed.play(2) { [Self.leaver(behind: gap, at: $0)] }
    #expect(feed.verdict() == .clear)
    feed.play(0.5) { [Self.leaver(behind: gap, at: 2 + $0)] }
    #expect(feed.verdict().holds)
  }

  @Test("a car that pulls out is counted apart, with how long the guard had held")
  func countsDepartures() throws {
    let recording = (0..<350).map { index in
      let time = UnixTime(microseconds: 1_000_000_000 + Int64(index) * 40_000)
      let objects = [Self.leaver(behind: 3, at: Double(index) * 0.04 - 8)]
      return RecordedFrame(received: time, frame: FeedFrame(section: "S1", time: time, objects: objects))
    }
    let score = try #require(GuardScene(site: Self.site).score(recording).first)
    #expect((score.approaches, score.departures, score.departureGaps) == (0, 1, 1))
    // Its front reaches the step, 5 m ahead, 2.2 s after it began.
    #expect(score.departureWarnings.map { (1.2...2.2).contains($0) } == [true])
  }

  @Test("what stands at the step obstructs it, and pedestrians do not count")
  func standing() {
    var feed = Feed()
    feed.play(1) { _ in
      [
        Self.object(.bicycle, id: "b", ahead: 0, right: -1.8),
        Self.object(.pedestrian, id: "p", ahead: Self.step, right: 1.5, length: 0.5, width: 0.5),
      ]
    }
    #expect(feed.verdict("left") == .obstructed(.bicycle))
    #expect(feed.verdict("right") == .clear)
  }

  @Test("a pedestrian who is faster than anybody walks counts: it may be a bicycle", arguments: [1.4, 2.2, 2.8, 4.2])
  func fastPedestrian(speed: Double) {
    var feed = Feed()
    feed.play(2) { [Self.object(.pedestrian, ahead: -2 - speed * (3 - $0), right: -1.8, speed: speed)] }
    #expect(speed > 2.5 ? feed.verdict().holds : feed.verdict() == .clear)
  }

  @Test("clear takes three frames in a row")
  func threeFrames() {
    var feed = Feed()
    feed.play(2)
    #expect(feed.verdict() == .clear)
    feed.play(0.2) { _ in [Self.object(ahead: -8, right: -1.8, speed: 4)] }
    #expect(feed.verdict().holds)
    // Its id is given to something far away, so it is missing: for 1.5 s it is carried on.
    let far = Self.object(ahead: 300, right: -1.8, speed: 4)
    for _ in 0..<37 {
      feed.play(0.04) { _ in [far] }
      #expect(feed.verdict().holds)
    }
    var seen: [Bool] = []
    for _ in 0..<4 {
      feed.play(0.04) { _ in [far] }
      seen.append(feed.verdict() == .clear)
    }
    #expect(seen == [false, false, true, true])
  }

  @Test("what vanishes on its way is carried on for 1.5 s")
  func vanishes() {
    var feed = Feed()
    feed.play(1) { [Self.object(ahead: -20 + 4 * $0, right: -1.8, speed: 4)] }
    feed.play(1.4)
    #expect(feed.verdict().holds)
    feed.play(0.4)
    #expect(feed.verdict() == .clear)
  }

  @Test("a feed that falls silent in the middle of an approach does not let the step go before it has passed")
  func silence() {
    var feed = Feed()
    // Its front is 10 m away, which it takes 2.5 s for.
    feed.play(1) { [Self.object(ahead: -11.2 - 4 * (1 - $0), right: -1.8, speed: 4)] }
    for tenth in 0...25 { #expect(feed.verdict(later: Double(tenth) / 10).holds, "after \(tenth) tenths") }
    #expect(feed.verdict(later: 4) == .blind(.silent))
  }

  @Test("why it is blind is told")
  func blind() {
    #expect(TrafficGuard(Self.site).verdict(for: StepID("left")!, at: 1) == .blind(.silent))
    var feed = Feed()
    feed.play(0.3)
    #expect(feed.verdict() == .blind(.slow))
    feed.play(1)
    #expect(feed.verdict() == .clear)
    #expect(feed.verdict(later: 0.4) == .blind(.silent))
    var late = Feed(delay: 1.362)
    late.play(2) { [Self.object(ahead: -16 + 4 * $0, right: -1.8, speed: 4)] }
    #expect(late.verdict() == .blind(.late))
    var unsure = Feed(clock: .init(offset: 0, uncertainty: 0.25))
    unsure.play(2)
    #expect(unsure.verdict() == .blind(.clock))
    var ahead = Feed(delay: -0.5)
    ahead.play(2)
    #expect(ahead.verdict() == .blind(.clock))
    var frozen = Feed()
    frozen.play(2)
    for _ in 0..<20 {
      let time = frozen.time
      frozen.time = 1001
      frozen.give([])
      frozen.time = time + 0.04
    }
    #expect(frozen.verdict() == .blind(.silent))
  }

  @Test("the feed's clock may be any, if it is known")
  func clock() {
    var feed = Feed(clock: .init(offset: 500, uncertainty: 0.01))
    feed.delay = 0.1 - 500
    feed.play(2) { [Self.object(ahead: -18 + 4 * $0, right: -1.8, speed: 4)] }
    #expect(feed.verdict().holds)
  }

  @Test("sections that overlap show an object twice, and it counts once")
  func overlap() {
    var feed = Feed()
    for index in 0..<50 {
      let objects = [Self.object(ahead: -16 + 0.16 * Double(index), right: -1.8, speed: 4)]
      feed.play(0.04) { _ in objects }
      feed.time -= 0.04
      feed.give(objects, section: "S2")
      feed.time += 0.04
    }
    #expect(feed.verdict("left").holds)
    #expect(feed.verdict("right") == .clear)
  }

  @Test("a section without frames for a minute is forgotten, and an old frame of it changes nothing")
  func forgottenSection() {
    var feed = Feed()
    func play(_ index: Int) {
      feed.give([Self.object(ahead: -12 + 0.16 * Double(index), right: -1.8, speed: 4)], section: "S2")
      feed.play(0.04)
    }
    for index in 0..<25 { play(index) }
    feed.play(1)
    #expect(feed.verdict().holds)
    feed.play(60)
    #expect(feed.verdict() == .clear)
    feed.give([], section: "S2", late: 61)
    #expect(feed.verdict() == .clear)
    // What had the same id then is another object now, and counts from its third frame on.
    let seen = (25..<28).map { index in
      play(index)
      return feed.verdict().holds
    }
    #expect(seen == [false, false, true])
  }

  @Test("a stamp from the future makes the guard blind, and hides nothing after it", arguments: ["S1", "S2"])
  func future(section: String) {
    var feed = Feed()
    feed.play(2)
    feed.give([], section: section, late: -120)
    #expect(feed.verdict(later: 0.002) == .blind(.clock))
    feed.play(1) { [Self.object(ahead: -12 + 4 * $0, right: -1.8, speed: 4)] }
    #expect(feed.verdict().holds)
  }

  @Test("a neighbouring section whose clock is wrong does not hide what comes", arguments: [3.0, 30, -3])
  func neighbourIsLate(late: Double) {
    var feed = Feed()
    feed.play(1) { [Self.object(ahead: -12 + 4 * $0, right: -1.8, speed: 4)] }
    feed.give([], section: "S2", late: late)
    #expect(feed.verdict(later: 0.002).holds)
    feed.play(1)
    feed.give([], section: "S2", late: late)
    #expect(feed.verdict("right", later: 0.002) != .clear)
  }

  @Test("a section that showed something here and falls silent makes the guard blind, though another one goes on")
  func neighbourGoesOn() {
    var feed = Feed()
    func play(_ seconds: Double, with sections: [String]) {
      for _ in 0..<Int(seconds / 0.04) {
        for section in sections {
          feed.give([Self.object(.car, ahead: section == "S1" ? 30 : 400, right: -5)], section: section)
        }
        feed.time += 0.04
      }
    }
    play(2, with: ["S1", "S2"])
    #expect(feed.verdict() == .clear)
    play(0.8, with: ["S2"])
    #expect(feed.verdict() == .blind(.silent))
    play(1, with: ["S1", "S2"])
    #expect(feed.verdict() == .clear)
    // What was never near need not go on.
    play(2, with: ["S1"])
    #expect(feed.verdict() == .clear)
  }

  @Test("a feed that shows nothing near the vehicle says nothing of it", arguments: [[], [300.0], [90, 2000]])
  func elsewhere(ahead: [Double]) {
    var feed = Feed(here: nil)
    feed.play(3) { _ in
      ahead.map {
        RoadObject(
          id: "\($0)", category: .car, position: Self.plane.place(of: Vector(x: $0, y: 0))!, velocity: .zero,
          heading: 0,
          length: nil, width: nil)
      }
    }
    #expect(feed.verdict() == .blind(.elsewhere))
    // What was near shows that the section covers this place, and still does when the road is empty.
    feed.play(1) { [Self.object(ahead: -50 - 8 * $0, right: -1.8, speed: -8, heading: .pi)] }
    feed.play(3)
    #expect(feed.verdict() == .clear)
  }

  /// A section with a bicycle that comes, and four empty ones whose frames are in time.
  @Test(
    "a section of this place that is late, slow or silent is not outvoted by its neighbours",
    arguments: [(1.5, 3, TrafficGuard.Blindness.late), (-1.5, 3, .late), (0, 8, .silent), (0, 5, .slow)])
  func outvoted(late: Double, every frames: Int, reason: TrafficGuard.Blindness) {
    var feed = Feed(here: nil)
    var said: Set<TrafficGuard.Blindness?> = []
    for index in 0..<100 {
      if index % frames == 0 {
        // It counts from its third frame on, so it has another id in each.
        let bicycle = Self.object(id: "\(index)", ahead: -50 + 0.1 * Double(index), right: -1.8, speed: 2.5)
        feed.give([bicycle], section: "S1", late: late)
      }
      for section in ["S2", "S3", "S4", "S5"] { feed.give([], section: section) }
      feed.time += 0.04
      let verdict = feed.verdict()
      #expect(verdict != .clear && !verdict.holds)
      if case .blind(let reason) = verdict { said.insert(reason) }
    }
    #expect(said.contains(reason))
    // One that shows something near, too, changes nothing.
    for index in 0..<100 {
      if index % frames == 0 { feed.give([], section: "S1", late: late) }
      feed.give([Self.object(.car, id: "parked", ahead: 40, right: 6)], section: "S2")
      feed.time += 0.04
      #expect(feed.verdict() != .clear)
    }
  }

  @Test("cars that stand where the feed has them exactly do not teach it that what moves is exact, too")
  func heldStill() {
    var random = SplitMix(7)
    func noise() -> Double { (0..<12).reduce(-6) { sum, _ in sum + Double.random(in: 0..<1, using: &random) } * 1.9 }
    let parked = (0..<60).map {
      Self.object(.car, id: "p\($0)", ahead: Double($0) - 30, right: 9, length: 4.4, width: 1.8)
    }
    var cleared = 0
    var feed = Feed()
    for round in 0..<5 {
      feed.play(8) { time in
        parked + [Self.object(id: "\(round)", ahead: -36 + 4.5 * time + noise(), right: -1.9 + noise(), speed: 4.5)]
      }
      // A second one comes, and is asked for in the two seconds before it is there.
      for index in 0..<150 {
        let ahead = -0.3 - 0.9 - 4.5 * (6 - Double(index) * 0.04)
        feed.play(0.04) { _ in
          parked + [Self.object(id: "\(round) b", ahead: ahead + noise(), right: -1.9 + noise(), speed: 4.5)]
        }
        if index >= 100, !feed.verdict().holds { cleared += 1 }
      }
    }
    #expect(cleared == 0)
  }

  @Test("where more comes than can be followed, the guard never says that the road is clear")
  func crowd() {
    var feed = Feed()
    let crowd = (0..<500).map {
      Self.object(.car, id: "\($0)", ahead: 20 + Double($0 % 25), right: 5 + Double($0 / 25))
    }
    for index in 0..<50 {
      feed.give(crowd, section: "S2")
      feed.give([Self.object(ahead: -14 + 0.16 * Double(index), right: -1.8, speed: 4)])
      feed.time += 0.04
    }
    #expect(feed.verdict() == .blind(.crowded))
    // Parked cars farther away take no room.
    var far = Feed()
    for index in 0..<50 {
      far.give((0..<500).map { Self.object(.car, id: "\($0)", ahead: 80 + Double($0), right: 5) }, section: "S2")
      far.give([Self.object(ahead: -14 + 0.16 * Double(index), right: -1.8, speed: 4)])
      far.time += 0.04
    }
    #expect(far.verdict().holds)
    var sections = Feed()
    for _ in 0..<50 {
      for index in 0..<17 { sections.give([], section: "S\(index)") }
      sections.time += 0.04
    }
    #expect(sections.verdict() == .blind(.crowded))
  }

  @Test("2,000 objects of any kind are judged")
  func many() {
    var feed = Feed()
    var objects: [RoadObject] = []
    for index in 0..<2000 {
      let (ahead, right) = (Double(index % 50) * 20 - 500, Double(index / 50) * 20 - 400)
      let speed = Double(index % 60) - 30
      objects.append(
        Self.object(.other, id: "\(index)", ahead: ahead, right: right, speed: speed, length: nil, width: nil))
    }
    feed.play(0.2) { _ in objects }
    _ = feed.verdict()
  }
}
