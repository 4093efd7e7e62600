/// A step as physics moves it: a hobby servo that turns it through a linkage, its mass and friction, its hard ends, and
/// what stands in its way or on it.
///
/// Places are shares of the way: 0 closed, 1 open. The rest is in SI units; the numbers are those of a step of a small
/// vehicle and of a servo that turns 60° in 0.1 s without a load.
struct Mechanism {
  /// The way from end to end, metres.
  static let way = 0.25
  /// How often the motion is computed, milliseconds.
  static let quantum: Int64 = 2
  /// Between two pulses of the servo, milliseconds.
  static let frame: Int64 = 20
  /// The servo's force at rest, newtons, and its speed without a load, metres a second.
  private static let (stall, freeSpeed) = (300.0, 1.67)
  /// The error below which the servo does not drive, and that at which it drives with all its force.
  private static let (deadBand, saturation) = (0.004, 0.06)
  /// What the servo's electronics take off for each metre a second, newtons.
  private static let damping = 150.0
  /// The gears' friction while the servo is not driven, newtons.
  private static let gears = 25.0
  /// Where the step meets its hard ends, and how stiff they are, newtons a metre.
  private static let (ends, endStiffness) = (-0.012...1.012, 60_000.0)

  /// Something in the step's way: it is met from below (`isOutside`) or from above.
  struct Obstacle {
    var place: Double
    var isOutside: Bool
    /// Newtons a metre: a foot or a frame.
    var stiffness: Double
  }

  private(set) var place = 0.0
  /// Shares of the way a second.
  private(set) var speed = 0.0
  /// With what the obstacle is pressed, newtons.
  private(set) var pressure = 0.0
  /// The pulse on the wire, as the place that it stands for; nil while there is none.
  private(set) var wire: Double?
  /// The pulse that the servo read last, and until when it drives after a single one.
  private(set) var latched: Double?
  private var drivesUntil: Int64?

  var friction = 10.0
  /// Of whoever stands on the step, as far as it is felt: kilograms.
  var load = 0.0
  /// What holds the step fast, newtons.
  var jam = 0.0
  var obstacle: Obstacle? { didSet { pressure = contact } }

  /// Whether the servo is driven, or will be at the next frame.
  var isDriven: Bool { wire != nil || latched != nil }
  /// Whether anything changes by itself.
  var isAwake: Bool { speed != 0 || latched != wire || drivesUntil != nil || isStrained }

  /// At rest, but the servo pulls hard enough to overcome friction.
  private var isStrained: Bool { abs(force) > resistance }

  mutating func set(wire pulse: Double?) {
    wire = pulse
    drivesUntil = nil
  }

  /// One pulse: the servo drives for a frame, then rests.
  mutating func pulse(toward place: Double, at time: Int64) {
    wire = nil
    latched = place
    drivesUntil = time + Self.frame
  }

  /// Somebody moves it a bit by hand; a servo that is driven withstands.
  mutating func push(to goal: Double, by bit: Double) {
    if !isDriven { place = abs(goal - place) < bit ? goal : place + (goal > place ? bit : -bit) }
  }

  /// A frame begins: the servo reads the wire.
  mutating func read() {
    if drivesUntil == nil { latched = wire }
  }

  /// Computes one quantum.
  mutating func advance(at time: Int64) {
    if let end = drivesUntil, time >= end { (drivesUntil, latched) = (nil, wire) }
    let interval = Double(Self.quantum) / 1000
    let (force, resistance) = (force, resistance)
    if speed == 0, abs(force) <= resistance { return }
    var velocity = speed * Self.way
    let isForward = velocity > 0 || (velocity == 0 && force > 0)
    let before = velocity
    velocity += (force - (isForward ? resistance : -resistance)) / (3 + load) * interval
    // Friction brings to rest, and never turns round.
    if before != 0, (velocity > 0) != (before > 0) { velocity = 0 }
    if abs(velocity) < 1e-4, abs(force) <= resistance { velocity = 0 }
    speed = velocity / Self.way
    place += speed * interval
    pressure = contact
  }

  private var contact: Double {
    guard let obstacle else { return 0 }
    let depth = (obstacle.isOutside ? place - obstacle.place : obstacle.place - place) * Self.way
    return depth > 0 ? depth * obstacle.stiffness : 0
  }

  /// All but friction.
  private var force: Double {
    let velocity = speed * Self.way
    var sum = 0.0
    if let latched {
      let error = latched - place
      if abs(error) > Self.deadBand {
        let drive = error / Self.saturation
        sum += Self.stall * (drive > 1 ? 1 : drive < -1 ? -1 : drive)
      }
      sum -= (Self.stall / Self.freeSpeed + Self.damping) * velocity
    }
    if place < Self.ends.lowerBound { sum += (Self.ends.lowerBound - place) * Self.way * Self.endStiffness }
    if place > Self.ends.upperBound { sum -= (place - Self.ends.upperBound) * Self.way * Self.endStiffness }
    if let obstacle { sum += obstacle.isOutside ? -contact : contact }
    return sum
  }

  private var resistance: Double { friction + load + jam + (latched == nil ? Self.gears : 0) }
}

/// An input as its wire has it: what the switch says, what is wrong with the wire, and the debouncing of the shell.
struct WiredInput {
  enum Flaw: String, CaseIterable { case healthy, cut, stuck, lost }

  var contact = false
  /// A switch that closes or opens does so more than once.
  var isBouncing = false
  var flaw = Flaw.healthy
  /// Rises whenever the reading changes, so that a report that waits for it to be steady can be given up.
  private(set) var changes = 0
  private var last: Bool?? = .none

  /// Nil when it cannot be read.
  var reading: Bool? {
    switch flaw {
    case .healthy: contact
    case .cut: false
    case .stuck: true
    case .lost: nil
    }
  }

  /// Whether the reading has changed since this was asked last.
  mutating func hasChanged() -> Bool {
    if let last, last == reading { return false }
    last = .some(reading)
    changes += 1
    return true
  }

  /// As after a start: whatever is read is new.
  mutating func forget() { last = .none }
}
