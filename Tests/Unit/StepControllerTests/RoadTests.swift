import Domain
import Geography
import StepProtocol
import TestSupport
import Testing
import Traffic

@testable import StepController

/// A step and what is on the road beside it, from the feed to the answer that a rider gets.
///
/// The street runs north, the vehicle points north, and its left side is to the west.
@Suite("Road") struct RoadTests {
  let bench = Bench()
  static let here = Coordinate(latitude: 48.7758, longitude: 9.1829)!
  static let plane = LocalPlane(at: here)
  /// Metres from the vehicle's middle to the middle of its steps.
  static let step = 0.2

  init() { start() }

  static func rules(
    _ source: TrafficRules.Source = .given(here, error: 0.25, heading: 0), isInFeed: Bool = false,
    refusesBlind: Bool = false
  ) -> TrafficRules {
    TrafficRules(
      source: source, isInFeed: isInFeed, length: 4.6, width: 1.9,
      steps: [
        .init(id: left, side: .left, from: 1.6, to: 2.6, reach: 0.4),
        .init(id: right, side: .right, from: 1.6, to: 2.6, reach: 0.4),
      ], refusesBlind: refusesBlind)
  }

  private func start(_ rules: TrafficRules = Self.rules()) {
    bench.road = rules
    bench.watched = []
    bench.start()
    bench.handle(.connected)
  }

  static func object(
    _ category: RoadObject.Category = .bicycle, id: String = "a", ahead: Double, right: Double, speed: Double = 0,
    heading: Double = 0, length: Double? = 1.8, width: Double? = 0.6
  ) -> RoadObject {
    RoadObject(
      id: id, category: category, position: plane.place(of: Vector(x: ahead, y: right))!,
      velocity: Vector(x: speed, y: 0), heading: heading, length: length, width: width)
  }

  static let own = object(.car, id: "own", ahead: 0, right: 0, length: 4.6, width: 1.9)

  /// Seconds since 1970 when the controller's clock shows 0, and by how much the feed's clock is ahead of that.
  static let origin = 1_800_000_000.0

  /// A bridge that sends 25 frames a second, each 0.1 s after its stamp.
  final class Feed {
    let bench: Bench
    /// What is on the road, by the feed's time in seconds of the controller's clock.
    var objects: (Double) -> [RoadObject] = { _ in [RoadTests.own] }
    var late = 0.1
    /// Seconds by which the feed's clock is ahead.
    var ahead = 0.0
    /// Whether frames have the bridge's time; otherwise the clocks are taken to be equal.
    var saysTime = false
    /// Seconds that an exchange with the bridge takes.
    var roundTrip = 0.02
    var section = "S1"

    init(_ bench: Bench) { self.bench = bench }

    func connect() { bench.handle(.road(.connected(origin: RoadTests.origin))) }

    func frame() -> FeedFrame {
      let now = Double(bench.time.clock) / 1000
      let stamp = RoadTests.origin + now - late + ahead
      var frame = FeedFrame(
        section: section, time: UnixTime(microseconds: Int64((stamp * 1e6).rounded())), objects: objects(now - late))
      if saysTime {
        let came = RoadTests.origin + now
        frame.bridge = BridgeStamps(
          received: stamp, sent: came - roundTrip / 2 + ahead, echo: came - roundTrip - 0.3,
          echoReceived: came - roundTrip / 2 - 0.3 + ahead)
      }
      return frame
    }

    func give() { bench.handle(.road(.frame(frame(), clock: bench.time.clock))) }

    /// Frames for some time.
    func play(_ seconds: Double) {
      for _ in 0..<Int((seconds / 0.04).rounded()) {
        bench.wait(40)
        give()
      }
    }
  }

  /// A feed that a rider's question has started.
  private func feed(as rider: Rider? = nil) -> Feed {
    let feed = Feed(bench)
    ask(as: rider ?? bench.rider())
    feed.connect()
    return feed
  }

  @discardableResult
  private func ask(_ step: StepID = left, as rider: Rider) -> Watch? {
    let statement = bench.send(rider.command(step, .status), to: step)[0]
    guard case .challenge(let challenge)? = statement.answer?.outcome else { return nil }
    return challenge.watch
  }

  /// What becomes of a command to open: nil where it is obeyed.
  private func opening(_ step: StepID = left, as rider: Rider) -> Refusal? {
    bench.open(step, as: rider).compactMap { $0.answer?.refusal }.first
  }

  // MARK: - Scenes

  struct Pass: CustomTestStringConvertible {
    let speed: Double
    let gap: Double
    let side: StepID
    var testDescription: String { "\(speed) km/h, \(gap) m from the body, \(side)" }
  }

  static let passes = [10.0, 15, 20, 25].flatMap { speed in
    [0.3, 0.6, 1.0].flatMap { gap in [left, right].map { Pass(speed: speed, gap: gap, side: $0) } }
  }

  /// Asks for both steps when a bicycle's front is that many metres behind the steps (in front of them: negative).
  private func ask(_ pass: Pass, when metres: Double, phase: Double) -> (near: Refusal?, far: Refusal?) {
    start()
    let rider = bench.rider()
    let feed = feed(as: rider)
    let speed = pass.speed / 3.6
    let side = pass.side == right ? 1.0 : -1
    // The last frame is up to 40 ms old when the command comes.
    let asked = Double(bench.time.clock) / 1000 + 1.2
    feed.objects = { time in
      let front = Self.step - 0.5 - metres + speed * (time - asked)
      return [Self.own, Self.object(ahead: front - 0.9, right: side * (0.95 + pass.gap + 0.3), speed: speed)]
    }
    feed.play(1.16)
    bench.wait(Int64(40 * phase))
    feed.give()
    bench.wait(Int64(40 * (1 - phase)))
    let other = pass.side == left ? right : left
    return (opening(pass.side, as: rider), opening(other, as: rider))
  }

  @Test("a step waits for a bicycle that passes, and opens 7 s before and 0.3 s after it", arguments: passes)
  func passing(_ pass: Pass) {
    let speed = pass.speed / 3.6
    for phase in [0.0, 0.3, 0.7] {
      for metres in [0, 0.5 * speed, 2 * speed] {
        let (near, far) = ask(pass, when: metres, phase: phase)
        #expect(near?.code == .approaching && near?.retryCanHelp == true && near?.oncoming?.category == "bicycle")
        #expect(near?.oncoming.map { abs(Double($0.arrival) / 1000 - metres / speed) < 1 } == true)
        #expect(far == nil)
      }
      for metres in [7 * speed, -(1 + 1.8 + 0.3 * speed)] {
        let (near, far) = ask(pass, when: metres, phase: phase)
        #expect(near == nil && far == nil, "\(metres) m: \(String(describing: near))")
      }
    }
  }

  @Test("the handle is held at 8 m and 15 km/h, and at 11 m and 20 km/h")
  func dooring() {
    for (speed, metres) in [(15.0, 8.0), (20, 11)] {
      for gap in [0.3, 0.6, 1.0] {
        for side in [left, right] {
          let pass = Pass(speed: speed, gap: gap, side: side)
          #expect(ask(pass, when: metres, phase: 0.5).near?.code == .approaching)
        }
      }
    }
  }

  @Test("the opposite lane and a car that is parked close behind hold nothing; what stands at the step does")
  func others() {
    let rider = bench.rider()
    let feed = feed(as: rider)
    let parked = Self.object(.car, id: "p", ahead: -2.3 - 0.3 - 2.2, right: 0, length: 4.4, width: 1.8)
    feed.objects = { time in
      let lane = (0..<6).map {
        Self.object(
          .car, id: "o\($0)", ahead: 60 - 14 * (time - 2) + 12 * Double($0), right: -0.95 - 4.2, speed: -14,
          heading: .pi, length: 4.5, width: 1.8)
      }
      return [Self.own, parked] + lane
    }
    feed.play(1)
    for _ in 0..<60 {
      feed.play(0.12)
      #expect(ask(as: rider) == .clear)
    }
    #expect(opening(as: rider) == nil)

    feed.objects = { _ in [Self.own, Self.object(id: "b", ahead: Self.step, right: 1.6)] }
    feed.play(1)
    #expect(ask(right, as: rider) == .obstructed && opening(right, as: rider)?.code == .obstructed)
  }

  // MARK: - What is guarded

  /// Bicycles on both sides that follow each other every three seconds.
  private static let coming: @Sendable (Double) -> [RoadObject] = { time in
    let (gap, speed) = (12.0, 4.0)
    let passed = (speed * time / gap).rounded(.down)
    let bicycles = (-3...3).flatMap { place in
      [left, right].map { side in
        object(
          id: "\(side) \(Int(passed) - place)", ahead: speed * time - passed * gap + Double(place) * gap,
          right: side == left ? -1.7 : 1.7, speed: speed)
      }
    }
    return [own] + bicycles
  }

  @Test("close never waits, and neither does what has begun")
  func onlyOpening() {
    let rider = bench.rider()
    let feed = feed(as: rider)
    feed.play(1)
    #expect(opening(as: rider) == nil)
    feed.objects = Self.coming
    for _ in 0..<50 {
      bench.wait(20)
      bench.handle(.tick)
      feed.give()
    }
    #expect(bench.servo.places[left] == 1)
    #expect(bench.close(as: rider).contains { $0.phase == .moving })
    // To turn it round would open it again.
    _ = bench.run(for: 300)
    #expect(opening(as: rider)?.code == .approaching)
    #expect(bench.run(for: 1_500).contains { $0.position == .close && $0.phase == .idle })
    // It opens nothing, and so an idle answer to a step that is there already needs no guard either.
    #expect(bench.close(as: rider)[0].answer?.refusal == nil)
  }

  @Test("what comes while the journal and the servo get ready is seen before anything moves")
  func askedAgain() {
    let rider = bench.rider()
    let feed = feed(as: rider)
    feed.play(1)
    bench.servo.isSlow = true
    #expect(opening(as: rider) == nil)
    feed.objects = Self.coming
    feed.play(0.5)
    let statements = bench.settle()
    #expect(statements.compactMap { $0.answer?.refusal?.code } == [.approaching])
    #expect(bench.moves.isEmpty && bench.journal.medium.entries[left]?.motion == nil)
    // It is no fault of the step.
    #expect(statements.allSatisfy { $0.fault == nil })
  }

  @Test("who waits and asks again uses up neither the motions of a minute nor a tag's reading")
  func patience() {
    let rider = bench.rider()
    let feed = feed(as: rider)
    feed.objects = Self.coming
    feed.play(1)
    for _ in 0..<40 {
      #expect(opening(as: rider)?.code == .approaching)
      feed.play(0.48)
    }
    feed.objects = { _ in [Self.own] }
    feed.play(2)
    #expect(opening(as: rider) == nil)
  }

  // MARK: - A feed that lies, stands or is lost

  @Test("a forged feed can delay a step and can never open one")
  func forged() {
    // Whatever it says, a command that is refused without it is refused with it.
    let stranger = bench.rider(signedBy: SigningKey())
    let late = bench.rider(expires: -1)
    let rider = bench.rider()
    let feed = feed(as: rider)
    feed.play(1)
    #expect(ask(as: rider) == .clear)
    #expect(bench.send(stranger.command(left, .status)).isEmpty)
    #expect(bench.send(late.command(left, .status)).refusal == .tokenExpired)
    let far = bench.move(.open, left, as: rider).with(proof: .standing(at: right))
    #expect(bench.send(rider.command(left, .move(far))).refusal == .wrongStep)
    bench.motionGuard.clearance = .stop(BlockReason("a foot"))
    #expect(opening(as: rider)?.code == .obstructed)
    bench.motionGuard.clearance = .clear
    #expect(bench.moves.isEmpty)
    // And it moves nothing by itself.
    var random = SplitMix(7)
    for _ in 0..<400 {
      feed.late = Double.random(in: -3...3, using: &random)
      feed.objects = { _ in
        (0..<Int.random(in: 0...9, using: &random)).map {
          Self.object(
            RoadObject.Category.allCases.randomElement(using: &random)!, id: "\($0 % 5)",
            ahead: .random(in: -60...60, using: &random), right: .random(in: -9...9, using: &random),
            speed: .random(in: -30...30, using: &random))
        }
      }
      feed.play(0.04)
      bench.handle(.tick)
    }
    #expect(bench.moves.isEmpty)
  }

  @Test(
    "a bridge that is lost in the middle of an approach: what was on its way is still waited for",
    arguments: [false, true])
  func lost(isTold: Bool) {
    let rider = bench.rider()
    let feed = feed(as: rider)
    feed.objects = { time in [Self.own, Self.object(ahead: -26 + 5 * (time - 1), right: -1.7, speed: 5)] }
    feed.play(2)
    #expect(opening(as: rider)?.code == .approaching)
    if isTold { bench.handle(.road(.lost)) }
    for _ in 0..<8 {
      bench.wait(250)
      #expect(opening(as: rider)?.code == .approaching)
    }
    bench.wait(3_000)
    #expect(ask(as: rider) == .blind)
    #expect(opening(as: rider) == nil)
    #expect(bench.events.contains(.unwatched(left, .silent)))
  }

  @Test("a vehicle that is told to does not open what it cannot see")
  func refusing() {
    start(Self.rules(refusesBlind: true))
    let rider = bench.rider()
    #expect(opening(as: rider) == Refusal(.blind))
    bench.handle(.road(.lost))
    bench.wait(30_000)
    #expect(opening(as: rider) == Refusal(.blind))
    let feed = feed(as: rider)
    feed.play(1)
    #expect(opening(as: rider) == nil)
  }

  @Test("a feed has two seconds to begin, and one that is refused has none")
  func beginning() {
    let rider = bench.rider()
    #expect(opening(as: rider) == Refusal(.blind))
    bench.wait(1_900)
    #expect(opening(as: rider) == Refusal(.blind))
    bench.wait(200)
    #expect(opening(as: rider) == nil)
    start()
    let other = bench.rider()
    ask(as: other)
    bench.handle(.road(.lost))
    #expect(opening(as: other) == nil)
  }

  @Test("the feed is asked for where the vehicle is, for a minute after a question that is authenticated")
  func armed() {
    #expect(bench.send(Array("{}".utf8)).isEmpty && bench.watched.isEmpty)
    let stranger = bench.rider(signedBy: SigningKey())
    _ = bench.send(stranger.command(left, .status))
    let late = bench.rider(expires: -1)
    _ = bench.send(late.command(left, .status))
    #expect(bench.watched.isEmpty)
    ask(as: bench.rider())
    #expect(bench.watched == [WatchedRoad(until: bench.time.clock + 60_000, position: Self.here, error: 0.25)])
    let feed = Feed(bench)
    feed.connect()
    feed.play(1)
    #expect(ask(as: bench.rider()) == .clear)
    bench.wait(61_000)
    feed.play(1)
    #expect(ask(as: bench.rider()) == .clear)
  }

  @Test("without a feed no answer says anything of the road")
  func none() {
    bench.road = nil
    bench.start()
    #expect(ask(as: bench.rider()) == nil)
    #expect(bench.watched.isEmpty)
  }

  // MARK: - Time

  @Test("a feed is blind whose stamps are late, in the future, frozen or backward")
  func stamps() {
    for late in [0.75, 1.4, 3600, -0.2, -5, -1e6] {
      start(Self.rules(refusesBlind: true))
      let rider = bench.rider()
      let feed = feed(as: rider)
      feed.late = late
      feed.play(3)
      #expect(ask(as: rider) == .blind, "\(late)")
    }
    start(Self.rules(refusesBlind: true))
    let rider = bench.rider()
    let feed = feed(as: rider)
    feed.play(1)
    let frozen = feed.frame()
    for _ in 0..<25 {
      bench.wait(40)
      bench.handle(.road(.frame(frozen, clock: bench.time.clock)))
    }
    #expect(ask(as: rider) == .blind)
    feed.play(2)
    #expect(ask(as: rider) == .clear)
    for _ in 0..<25 {
      bench.wait(40)
      feed.late += 0.08
      feed.give()
    }
    #expect(ask(as: rider) == .blind)
  }

  @Test(
    "a bridge that says its time may have any clock; one that steps makes the guard blind, and is then known again",
    arguments: [2.0, -2.0])
  func stepped(by seconds: Double) {
    start(Self.rules(refusesBlind: true))
    let rider = bench.rider()
    let feed = feed(as: rider)
    (feed.saysTime, feed.ahead) = (true, 77)
    feed.objects = Self.coming
    feed.play(1)
    #expect(opening(as: rider)?.code == .approaching)
    feed.ahead += seconds
    for _ in 0..<75 {
      feed.play(0.04)
      // It never says that the road is free while the bicycle comes.
      #expect(ask(as: rider) != .clear)
    }
    #expect(ask(as: rider) == .approaching)
    feed.objects = { _ in [Self.own] }
    feed.play(2)
    #expect(ask(as: rider) == .clear)
  }

  @Test("the vehicle's own wall clock is set: nothing changes", arguments: [2, -2, 3600] as [Int64])
  func wallClock(seconds: Int64) {
    let rider = bench.rider(expires: 100_000)
    let feed = feed(as: rider)
    feed.objects = Self.coming
    feed.play(1)
    bench.time = ControllerTime(clock: bench.time.clock, wall: bench.time.wall + seconds)
    feed.play(0.04)
    #expect(ask(as: rider) == .approaching)
  }

  @Test("an exchange that takes too long says too little of the clock")
  func slowExchange() {
    start(Self.rules(refusesBlind: true))
    let rider = bench.rider()
    let feed = feed(as: rider)
    (feed.saysTime, feed.roundTrip) = (true, 0.5)
    feed.play(2)
    #expect(ask(as: rider) == .blind)
    feed.roundTrip = 0.3
    feed.play(1)
    #expect(ask(as: rider) == .clear)
  }

  // MARK: - Where the vehicle is

  @Test("the vehicle is where its own box is in the feed, so what the feed is off for good cancels out")
  func ownBox() {
    // The feed has everything 4 m further north and 3 m further east.
    let shifted: (RoadObject) -> RoadObject = { object in
      var object = object
      object.position = Self.plane.place(of: Self.plane.point(of: object.position) + Vector(x: 4, y: 3))!
      return object
    }
    for (rules, isHeld) in [
      (Self.rules(.given(Self.here, error: 10, heading: 0), isInFeed: true), true), (Self.rules(), false),
    ] {
      start(rules)
      let rider = bench.rider()
      let feed = feed(as: rider)
      feed.objects = { _ in [Self.own, Self.object(ahead: -8, right: -1.7, speed: 4)].map(shifted) }
      feed.play(2)
      #expect((opening(as: rider)?.code == .approaching) == isHeld)
      #expect(isHeld == false || opening(right, as: rider) == nil)
    }
  }

  @Test("two boxes that may be the vehicle, or none, make the guard blind; one that comes later changes nothing")
  func twins() {
    let rules = Self.rules(.given(Self.here, error: 10, heading: 0), isInFeed: true, refusesBlind: true)
    let twin = Self.object(.car, id: "twin", ahead: -5, right: 1, length: 4.3, width: 1.8)
    for objects in [[], [Self.own, twin], [Self.object(.bus, ahead: 0, right: 0, length: 12, width: 2.5)]] {
      start(rules)
      let rider = bench.rider()
      let feed = feed(as: rider)
      feed.objects = { _ in objects }
      feed.play(2)
      #expect(opening(as: rider) == Refusal(.blind))
    }
    start(rules)
    let rider = bench.rider()
    let feed = feed(as: rider)
    feed.objects = { _ in [Self.own] }
    feed.play(1)
    feed.objects = { _ in [twin, Self.own] }
    feed.play(1)
    #expect(opening(as: rider) == nil)
  }

  private func fix(_ error: Double, course: Double? = nil, off: Double = 0) {
    let position = Self.plane.place(of: Vector(x: 0, y: off))!
    bench.handle(.road(.fix(.init(position: position, error: error, course: course))))
  }

  @Test("with a receiver that is more than 1 m off, what passes on either side holds both steps")
  func receiver() {
    for (error, holdsBoth) in [(0.5, false), (3, true)] {
      start(Self.rules(.receiver(heading: nil)))
      let rider = bench.rider()
      // Which way it points is known once it has driven.
      fix(error, course: 0)
      let feed = feed(as: rider)
      feed.objects = { _ in [Self.own, Self.object(ahead: -8, right: -1.7, speed: 4)] }
      feed.play(2)
      fix(error)
      #expect(opening(left, as: rider)?.code == .approaching)
      #expect((opening(right, as: rider)?.code == .approaching) == holdsBoth)
    }
  }

  @Test("without a fix, with an old or a bad one, or before it has driven, the guard is blind")
  func noFix() {
    start(Self.rules(.receiver(heading: nil), refusesBlind: true))
    let rider = bench.rider()
    let feed = feed(as: rider)
    bench.handle(.road(.fix(nil)))
    feed.play(2)
    #expect(ask(as: rider) == .blind && bench.watched.isEmpty)
    fix(25, course: 0)
    feed.play(1)
    #expect(ask(as: rider) == .blind && bench.watched.isEmpty)
    fix(2)
    feed.play(1)
    #expect(ask(as: rider) == .blind && !bench.watched.isEmpty)
    fix(2, course: 0)
    feed.play(1)
    #expect(ask(as: rider) == .clear)
    feed.play(11)
    #expect(ask(as: rider) == .blind)
  }

  @Test("a feed whose axes are swapped is told once for each connection, and makes the guard blind")
  func swapped() {
    start(Self.rules(refusesBlind: true))
    let rider = bench.rider()
    let feed = feed(as: rider)
    feed.objects = { _ in
      [
        RoadObject(
          id: "a", category: .car, position: Coordinate(latitude: 9.18, longitude: 48.77)!, velocity: .zero, heading: 0,
          length: nil, width: nil)
      ]
    }
    feed.play(1)
    #expect(bench.events.filter { $0 == .farRoad }.count == 1)
    feed.connect()
    feed.play(1)
    #expect(bench.events.filter { $0 == .farRoad }.count == 2)
    feed.play(3)
    #expect(ask(as: rider) == .blind && opening(as: rider) == Refusal(.blind))
  }

  @Test("ids that are used again for something else hold nothing that is far away")
  func reusedIDs() {
    let rider = bench.rider()
    let feed = feed(as: rider)
    feed.objects = { time in
      [Self.own, Self.object(ahead: Int(time * 25) % 2 == 0 ? 40 : -70, right: -1.7, speed: 4)]
    }
    feed.play(2)
    #expect(ask(as: rider) == .clear)
  }

  @Test("a hostile feed with sections and objects without end costs little")
  func flood() {
    let rider = bench.rider()
    let feed = feed(as: rider)
    for index in (0..<4).flatMap({ _ in 0..<20 }) {
      feed.section = "S\(index)"
      feed.objects = { _ in
        (0..<200).map {
          Self.object(.car, id: "\(index)-\($0)", ahead: Double($0) - 100, right: Double(index % 2) - 2)
        }
      }
      feed.play(0.04)
    }
    #expect(ask(as: rider) == .obstructed)
  }
}
