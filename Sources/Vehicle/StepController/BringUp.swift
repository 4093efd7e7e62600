package import Domain
package import StepProtocol

/// Lets a technician lead the servo of one step in small increments, mark its ends and test them.
///
/// The controller does not run meanwhile, but the rules for its motions apply here too: one tick's worth at most, along
/// the slowest ramp; no motion against an input; an unknown place is approached by single pulses. Times are in
/// milliseconds, on the caller's clock.
package struct BringUp: Sendable {
  /// The pulses to which the servo may be led, microseconds: the range of an SG90.
  package static let range = 500...2500
  /// Maps pulses to places 0 and 1 here. The real ends are not known yet.
  package static let scale = ServoPulses(closed: 1000, open: 2000)
  /// How far a held key may set the target ahead of the servo, microseconds. One key press may always move it by its
  /// own increment.
  private static let lead = 30

  package enum Order: Equatable, Sendable {
    /// Find the middle of the range, starting from an unknown place.
    case find
    /// Go on by microseconds, for a key that may be held down.
    case jog(by: Int)
    /// Go by microseconds from the present target.
    case move(by: Int)
    /// Go to a pulse, in microseconds.
    case go(to: Int)
    /// Take the present place as this end.
    case mark(Command.Move.Target)
    /// Go from closed to open and back, and check the end switches.
    case test
    /// Stop at once, and hold.
    case stop
  }

  package enum Input: Sendable {
    /// Comes before all other inputs. Sets up the output, which moves nothing.
    case started
    case ordered(Order)
    case sensed(SensorReport)
    case servo(ServoReport)
    case tick
    /// Release the servo, wherever it is.
    case ended
  }

  package enum Effect: Equatable, Sendable {
    case servo(ServoOrder)
    case tell(Event)
  }

  /// Pulses are in microseconds.
  package enum Event: Equatable, Sendable {
    /// The output is set up. Nil if it gives no pulses: then the servo's place is unknown.
    case ready(Int?)
    /// The servo came to rest at its target.
    case arrived(Int)
    /// The servo was stopped and is held; nil if it is not driven.
    case stopped(Int?)
    /// An input or a fault has stopped the servo.
    case held(Int?, String)
    /// The order cannot be carried out.
    case refused(String)
    case marked(Command.Move.Target, Int)
    /// The test reached an end. `sawAt` is the pulse at which the end's switch first saw the step; nil if there is no
    /// switch.
    case reached(Command.Move.Target, sawAt: Int?)
    case missed(Command.Move.Target)
    case passed
    case released
    /// The servo could not be released.
    case driven(String)
  }

  /// What the technician sees.
  package struct State: Equatable, Sendable {
    /// Nil if it is unknown.
    package let pulse: Int?
    package let target: Int?
    package let ends: ServoPulses
    /// In the order of their names; nil if an input is lost, or has not been read yet.
    package let inputs: [(sensor: SensorID, isActive: Bool?)]

    package static func == (a: State, b: State) -> Bool {
      (a.pulse, a.target, a.ends) == (b.pulse, b.target, b.ends) && a.inputs.elementsEqual(b.inputs, by: ==)
    }
  }

  private struct Test {
    var ends: [Command.Move.Target] = [.close, .open, .close]
    var sawAt: Int?
    /// When the servo reached the end, while the switch there does not see the step.
    var waits: Int64?
  }

  private enum Course {
    case finding(Inching)
    case jog(Jog)
    /// The leg is nil if the servo is already at the end.
    case test(Test, Leg?)
  }

  package let step: StepID
  /// The ends found so far.
  package private(set) var ends: ServoPulses
  /// Whether this mode has driven the servo.
  package private(set) var hasDriven = false
  private var readings: Readings
  private var levels: [SensorID: Bool?]
  private var course: Course?
  /// Where the servo is held; nil if it is not held and its place is unknown.
  private var place: Double?
  private var (now, turned, lastNumber) = (Int64(0), Int64(0), 0)
  /// When the order was given that the servo has not yet reported on.
  private var ordered: Int64?
  private enum Phase { case preparing, working, releasing, released }
  private var phase = Phase.preparing
  private var effects: [Effect] = []

  package init(_ step: StepID, ends: ServoPulses, inputs: Inputs) {
    self.step = step
    self.ends = ends
    let wirings = inputs.wirings.filter { $0.key.step == step || $0.key.step == nil }
    readings = Readings(Inputs(wirings: wirings, interlock: inputs.interlock))
    levels = wirings.mapValues { _ in nil }
  }

  package var isMoving: Bool { course != nil }
  /// Whether it waits for the servo to be set up or released.
  package var awaitsServo: Bool { phase == .preparing || phase == .releasing }
  package var needsTicks: Bool { isMoving || awaitsServo }

  package var state: State {
    let target: Double? =
      switch course {
      case .jog(let jog)?: jog.target
      case .test(let test, _)?: Self.place(pulse(at: test.ends[0]))
      case .finding?, nil: nil
      }
    return State(
      pulse: place.map(Self.pulse), target: target.map(Self.pulse), ends: ends,
      inputs: levels.sorted { $0.key.description < $1.key.description }.map { ($0.key, $0.value) })
  }

  /// Where the step is after the servo was released, according to the pulses that the controller uses.
  package func position(by ends: ServoPulses) -> Position {
    guard course == nil, let pulse = place.map(Self.pulse) else { return .unknown }
    return pulse == ends.closed ? .close : pulse == ends.open ? .open : .unknown
  }

  package mutating func handle(_ input: Input, at clock: Int64) -> [Effect] {
    (effects, now) = ([], clock)
    switch input {
    case .started: order(.prepare(from: .unknown, to: .open))
    case .ordered(let order):
      if phase == .working { obey(order) }
    case .sensed(let report):
      if readings.note(report) { levels[report.sensor] = report.isActive }
      if let hindrance, isMoving { hold(hindrance.description) }
      watchEnd()
    case .servo(let report): take(report)
    case .tick: tick()
    case .ended: release()
    }
    return effects
  }

  // MARK: - Orders

  private mutating func obey(_ order: Order) {
    switch order {
    case .stop:
      if isMoving { stop() }
    case .find:
      if let place { return tell(.arrived(Self.pulse(place))) }
      guard !isMoving else { return }
      begin(.finding(Inching()))
    case .mark(let end):
      guard let place, !isMoving else { return refuse("let the servo stand still at the end first") }
      let pulse = Self.pulse(place)
      guard Self.range.contains(pulse) else { return refuse("\(pulse) µs is not between 500 and 2500") }
      if end == .open { ends.open = pulse } else { ends.closed = pulse }
      tell(.marked(end, pulse))
    case .jog(let increment):
      lead { $0.go(by: Self.length(increment), lead: Self.length(max(Self.lead, abs(increment)))) }
    case .move(let way): lead { $0.go(to: $0.target + Self.length(way)) }
    case .go(let pulse):
      guard Self.range.contains(pulse) else { return refuse("\(pulse) µs is not between 500 and 2500") }
      lead { $0.go(to: Self.place(pulse)) }
    case .test:
      guard !isMoving, place != nil else { return refuse("the servo has to be found first, and to stand still") }
      guard ends.closed != ends.open else { return refuse("both ends are at \(ends.open) µs") }
      setOut(Test())
    }
  }

  private mutating func lead(_ change: (inout Jog) -> Void) {
    guard let place else { return refuse("nobody knows where the servo is: find its middle first") }
    var jog = Jog(at: place)
    switch course {
    case .jog(let present)?: jog = present
    case .finding?, .test?: return refuse("the servo is under way: stop it first")
    case nil: break
    }
    change(&jog)
    jog.limit(to: Self.place(Self.range.lowerBound)...Self.place(Self.range.upperBound))
    if isMoving {
      course = .jog(jog)
    } else if jog.isDone {
      tell(.arrived(Self.pulse(place)))
    } else {
      begin(.jog(jog))
    }
  }

  private mutating func setOut(_ test: Test) {
    guard let place else { return }
    let end = Self.place(pulse(at: test.ends[0]))
    begin(
      .test(test, abs(end - place) < MotionProfile.slowest.longestStride ? nil : Leg(from: place, to: end, .slowest)))
    watchEnd()
  }

  private mutating func begin(_ course: Course) {
    if let hindrance { return refuse(hindrance.description) }
    self.course = course
    turned = now
  }

  private mutating func stop() {
    let wasFinding = place == nil
    course = nil
    // A servo that gets single pulses is not driven between them. To be safe, it is released.
    if wasFinding { order(.release) }
    tell(.stopped(place.map(Self.pulse)))
  }

  /// Why nothing may move. The outward direction is not known yet, so every motion counts as outward.
  private var hindrance: Hindrance? { readings.hindrance(to: step, extends: true) }

  private mutating func hold(_ reason: String) {
    if place == nil { order(.release) }
    course = nil
    tell(.held(place.map(Self.pulse), reason))
  }

  // MARK: - The servo

  /// How long an output may take to be set up or released.
  private static let patience: Int64 = 2_000

  private mutating func tick() {
    let gap = now - turned
    turned = now
    if let ordered, now - ordered > (phase == .working ? MotionProfile.longestGap : Self.patience) {
      return fail("the servo did not answer for \(now - ordered) ms")
    }
    guard phase == .working, isMoving else { return }
    if let hindrance { return hold(hindrance.description) }
    if gap > MotionProfile.longestGap { return hold("the program was held up for \(gap) ms") }
    if ordered == nil { advance(by: gap) }
  }

  private mutating func advance(by gap: Int64) {
    switch course {
    case .finding(var approach)?:
      let action = approach.advance(by: gap, toward: Self.middle)
      course = .finding(approach)
      if approach.isDone { place = Self.middle }
      if let action { drive(action) }
    case .jog(var jog)?:
      guard let next = jog.advance(by: gap) else { return }
      course = .jog(jog)
      place = next
      drive(.move(to: next))
    case .test(let test, var leg?)? where !leg.isDone:
      leg.advance(by: gap)
      place = leg.place
      course = .test(test, leg)
      drive(.move(to: leg.place))
    case .test(let test, let leg)?: look(test, leg)
    case nil: break
    }
  }

  /// At an end of the test: checks the end's switch, and goes on.
  private mutating func look(_ test: Test, _ leg: Leg?) {
    var test = test
    let end = test.ends[0]
    if readings.hasSwitch(at: end, of: step), !readings.sees(step, at: end) {
      let since = test.waits ?? now
      test.waits = since
      course = now - since > Motion.endPatience ? nil : .test(test, leg)
      if !isMoving { tell(.missed(end)) }
      return
    }
    tell(.reached(end, sawAt: test.sawAt))
    test.ends.removeFirst()
    (test.sawAt, test.waits) = (nil, nil)
    course = nil
    if test.ends.isEmpty { tell(.passed) } else { setOut(test) }
  }

  /// Notes the place at which the switch of the test's present end first sees the step.
  private mutating func watchEnd() {
    guard case .test(var test, let leg)? = course, let place else { return }
    test.sawAt = readings.sees(step, at: test.ends[0]) ? test.sawAt ?? Self.pulse(place) : nil
    course = .test(test, leg)
  }

  private mutating func take(_ report: ServoReport) {
    guard report.number == lastNumber else { return }
    ordered = nil
    switch (phase, report.outcome) {
    case (.preparing, .ready(let found)):
      (phase, place) = (.working, found)
      tell(.ready(found.map(Self.pulse)))
    case (.releasing, .failed(let error)):
      phase = .released
      tell(.driven(error.description))
    case (.releasing, _):
      phase = .released
      tell(.released)
    case (_, .failed(let error)): fail(error.description)
    case (.working, _):
      switch course {
      case .finding? where place != nil: arrive()
      case .jog(let jog)? where jog.isDone: arrive()
      case .finding?, .jog?, .test?, nil: break
      }
    case (.preparing, _), (.released, _): break
    }
  }

  private mutating func arrive() {
    course = nil
    if let place { tell(.arrived(Self.pulse(place))) }
  }

  /// Releases the servo, because its state is unknown.
  private mutating func fail(_ reason: String) {
    switch phase {
    case .releasing:
      phase = .released
      tell(.driven(reason))
    case .preparing, .working:
      place = nil
      tell(.held(nil, reason))
      release()
    case .released: break
    }
  }

  private mutating func release() {
    // From here on the servo stays at its last place, unless somebody turns it.
    course = nil
    switch phase {
    case .preparing, .working:
      phase = .releasing
      order(.release)
    case .releasing, .released: break
    }
  }

  private mutating func drive(_ action: ServoOrder.Action) {
    hasDriven = true
    order(action)
  }

  private mutating func order(_ action: ServoOrder.Action) {
    ordered = now
    lastNumber += 1
    effects.append(.servo(ServoOrder(step: step, number: lastNumber, action: action)))
  }

  private mutating func tell(_ event: Event) { effects.append(.tell(event)) }
  private mutating func refuse(_ reason: String) { tell(.refused(reason)) }

  // MARK: - Pulses and places

  private static let middle = place((range.lowerBound + range.upperBound) / 2)

  private static func length(_ microseconds: Int) -> Double {
    Double(microseconds) / Double(scale.open - scale.closed)
  }

  private static func place(_ pulse: Int) -> Double { length(pulse - scale.closed) }

  private static func pulse(_ place: Double) -> Int {
    scale.closed + Int((place * Double(scale.open - scale.closed)).rounded())
  }

  private func pulse(at end: Command.Move.Target) -> Int { end == .open ? ends.open : ends.closed }
}
