import Geography

import func Glibc.cos
import func Glibc.sin

/// One object as the frames so far show it, in a local plane.
///
/// A Kalman filter of position and velocity. Its two axes have the same noise, so they share one covariance.
struct Track: Sendable {
  private(set) var category: RoadObject.Category
  /// Half of length and width.
  private(set) var half: Vector
  private(set) var forward: Vector
  /// How many frames had it.
  private(set) var frames = 1
  /// Of the last frame that had it, on the feed's clock.
  private(set) var time: Double
  private(set) var position: Vector
  private(set) var velocity: Vector
  /// Metres squared, metres squared a second, metres squared a second squared.
  private var positionVariance: Double
  private var covariance = 0.0
  private var velocityVariance: Double
  private var turn: Turn

  /// How well a feed knows speeds, m/s: a tenth of what a pedestrian has, and what trackers of radar and lidar reach.
  private static let velocityNoise = 0.3
  /// How fast speeds change: (1 m/s²)² for 1 s.
  private static let agility = 1.0

  init(_ object: RoadObject, at position: Vector, time: Double, noise: Double) {
    category = object.category
    half = Self.half(of: object)
    forward = Self.forward(of: object, at: object.velocity)
    self.time = time
    self.position = position
    velocity = object.velocity
    positionVariance = noise * noise
    velocityVariance = Self.velocityNoise * Self.velocityNoise
    turn = Turn(object.velocity)
  }

  private static func half(of object: RoadObject) -> Vector {
    let usual = object.category.usualSize
    return Vector(x: (object.length ?? usual.x) / 2, y: (object.width ?? usual.y) / 2)
  }

  /// Where its length points to. Whatever has wheels goes along its length, give or take 30 degrees in a tight bend: a
  /// heading that is further off is wrong, unless the speed may be.
  private static func forward(of object: RoadObject, at velocity: Vector) -> Vector {
    let heading = Vector(direction: object.heading)
    let aside = abs(velocity.x * heading.y - velocity.y * heading.x)
    return aside > max(velocity.length / 2, 3 * velocityNoise) ? velocity * (1 / velocity.length) : heading
  }

  /// Follows the object to the next frame.
  ///
  /// - Parameter noise: standard deviation of a position in the feed, metres.
  /// - Returns: how far the position is from where the one before and the feed's speed would have it; nil when this
  ///   cannot be the same object: its id was given to another one.
  mutating func follow(_ object: RoadObject, at measured: Vector, time: Double, noise: Double) -> Vector? {
    let step = time - self.time
    // It is predicted,
    position = position + velocity * step
    positionVariance += step * (2 * covariance + step * velocityVariance) + Self.agility * step * step * step / 3
    covariance += step * velocityVariance + Self.agility * step * step / 2
    velocityVariance += Self.agility * step
    let residual = measured - position
    guard residual.length < 3 + 5 * (positionVariance + noise * noise).squareRoot() else { return nil }
    // corrected by the position,
    var innovation = positionVariance + noise * noise
    let (gain, drag) = (positionVariance / innovation, covariance / innovation)
    position = position + residual * gain
    velocity = velocity + residual * drag
    velocityVariance -= drag * covariance
    covariance *= 1 - gain
    positionVariance *= 1 - gain
    // and by the speed.
    innovation = velocityVariance + Self.velocityNoise * Self.velocityNoise
    let (pull, push) = (covariance / innovation, velocityVariance / innovation)
    let error = object.velocity - velocity
    position = position + error * pull
    velocity = velocity + error * push
    positionVariance -= pull * covariance
    covariance *= 1 - push
    velocityVariance *= 1 - push
    turn.follow(object.velocity, noise: Self.velocityNoise, step: step)
    category = object.category
    half = Self.half(of: object)
    forward = Self.forward(of: object, at: velocity)
    self.time = time
    frames += 1
    return residual
  }

  /// Standard deviation of the position, metres.
  var uncertainty: Double { max(0, positionVariance).squareRoot() }

  /// Below 0.3 m/s: the feed's speed of what stands is not quite 0.
  var isStanding: Bool { velocity.length < 0.3 }

  /// How fast the way that it goes turns, radians a second, positive clockwise; nil where nothing shows that it does.
  var turnRate: Double? {
    // 4 m/s² to the side is more than anybody takes a bend with, but for races.
    turn.rate.map { min(max($0, -4 / velocity.length), 4 / velocity.length) }
  }

  /// The box that an object will be in if it goes on turning: first on an arc, then straight on.
  ///
  /// The arc ends once the object has turned as far again as it has turned so far: a turn that has lasted some time is
  /// expected to last that time again.
  ///
  /// - Parameter rate: of the turn, radians a second, positive clockwise.
  func box(later: Double, turning rate: Double, doubt: Double) -> Box {
    var box = box(later: later, doubt: doubt)
    let most = min(abs(turn.turned), .pi / 2)
    let angle = min(max(rate * later, -most), most)
    let radius = velocity.length / rate
    let ahead = velocity * (1 / velocity.length)
    let (along, across) = (radius * sin(angle), radius * (1 - cos(angle)))
    let after = Vector(direction: velocity.direction + angle)
    let straight = velocity.length * max(0, later - angle / rate)
    box.center = position + ahead * along + Vector(x: -ahead.y, y: ahead.x) * across + after * straight
    return Box(center: box.center, forward: Vector(direction: forward.direction + angle), half: box.half)
  }

  /// The box that it will be in, with what may be wrong about that.
  ///
  /// - Parameters:
  ///   - later: seconds after the last frame that had it.
  ///   - doubt: metres added to each side.
  func box(later: Double, doubt: Double) -> Box {
    // It may brake or speed up by 0.5 m/s², and drift sideways at 0.25 m/s.
    let margin = Vector(x: doubt + 0.25 * later * later, y: doubt + 0.25 * later)
    return Box(center: position + velocity * later, forward: forward, half: half + margin)
  }

  /// The box as it was in the last frame.
  var box: Box { Box(center: position, forward: forward, half: half) }
}

/// Which way something goes, and how fast that turns: a Kalman filter of an angle and its rate.
private struct Turn {
  private var direction: Double
  private var speed: Double
  private var turning = 0.0
  /// By how much it has turned since it began to.
  private(set) var turned = 0.0
  /// Radians squared, radians squared a second, radians squared a second squared.
  private var directionVariance = 0.0
  private var covariance = 0.0
  private var turningVariance = Self.unknown

  /// Whoever turns on the spot does so by about 0.3 radians a second.
  private static let unknown = 0.09
  /// How fast the rate changes: a bend of 50 m begins within two seconds for a bicycle, (0.05 rad/s)² or so.
  private static let agility = 0.001
  /// Metres a second from which there is a way that something goes.
  private static let leastSpeed = 1.0

  init(_ velocity: Vector) { (direction, speed) = (velocity.direction, 0) }

  /// Radians a second; nil where it is within two standard deviations of none.
  var rate: Double? {
    speed >= Self.leastSpeed && turning * turning > 4 * turningVariance ? turning : nil
  }

  mutating func follow(_ velocity: Vector, noise: Double, step: Double) {
    let wasMoving = speed >= Self.leastSpeed
    speed = velocity.length
    guard speed >= Self.leastSpeed else { return }
    let measured = noise / speed * (noise / speed)
    direction += turning * step
    directionVariance += step * (2 * covariance + step * turningVariance) + Self.agility * step * step * step / 3
    covariance += step * turningVariance + Self.agility * step * step / 2
    turningVariance += Self.agility * step
    var residual = velocity.direction - direction
    if residual > .pi { residual -= 2 * .pi } else if residual < -.pi { residual += 2 * .pi }
    guard wasMoving, abs(residual) < 1 else {
      self = Turn(velocity)
      (speed, directionVariance) = (velocity.length, measured)
      return
    }
    let innovation = directionVariance + measured
    let (gain, drag) = (directionVariance / innovation, covariance / innovation)
    direction += residual * gain
    if direction > .pi { direction -= 2 * .pi } else if direction < -.pi { direction += 2 * .pi }
    turning += residual * drag
    turningVariance -= drag * covariance
    covariance *= 1 - gain
    directionVariance *= 1 - gain
    guard let rate else {
      // Noise alone may hide it for a moment.
      turned -= turned * min(step, 1)
      return
    }
    turned = (turned < 0) == (rate < 0) ? turned + rate * step : rate * step
  }
}
