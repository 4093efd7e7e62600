import Geography

import func Glibc.cos
import func Glibc.sin

/// The state of one object in a local plane, estimated from the frames so far.
///
/// A Kalman filter of position and velocity. Both axes have the same noise, so they share one covariance.
struct Track: Sendable {
  private(set) var category: RoadObject.Category
  /// Half of length and width.
  private(set) var half: Vector
  private(set) var forward: Vector
  /// How many frames contained the object.
  private(set) var frames = 1
  /// The time of the last frame that contained it, on the feed's clock.
  private(set) var time: Double
  private(set) var position: Vector
  private(set) var velocity: Vector
  /// In m², m²/s and m²/s².
  private var positionVariance: Double
  private var covariance = 0.0
  private var velocityVariance: Double
  private var turn: Turn

  /// The accuracy of a feed's speeds, m/s: a tenth of a pedestrian's speed, and what radar and lidar trackers reach.
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

  /// The direction of the object's length. Wheeled vehicles move along their length, within 30 degrees even in a tight
  /// bend. So a heading that differs more from the direction of motion is wrong, unless the speed is too uncertain to
  /// tell.
  private static func forward(of object: RoadObject, at velocity: Vector) -> Vector {
    let heading = Vector(direction: object.heading)
    let aside = abs(velocity.x * heading.y - velocity.y * heading.x)
    return aside > max(velocity.length / 2, 3 * velocityNoise) ? velocity * (1 / velocity.length) : heading
  }

  /// Updates the track with the object in the next frame.
  ///
  /// - Parameter noise: standard deviation of a position in the feed, metres.
  /// - Returns: the measured position minus the predicted one; nil if this cannot be the same object, because its id
  ///   now belongs to another one.
  mutating func follow(_ object: RoadObject, at measured: Vector, time: Double, noise: Double) -> Vector? {
    let step = time - self.time
    // Predict,
    position = position + velocity * step
    positionVariance += step * (2 * covariance + step * velocityVariance) + Self.agility * step * step * step / 3
    covariance += step * velocityVariance + Self.agility * step * step / 2
    velocityVariance += Self.agility * step
    let residual = measured - position
    guard residual.length < 3 + 5 * (positionVariance + noise * noise).squareRoot() else { return nil }
    // correct by the position,
    var innovation = positionVariance + noise * noise
    let (gain, drag) = (positionVariance / innovation, covariance / innovation)
    position = position + residual * gain
    velocity = velocity + residual * drag
    velocityVariance -= drag * covariance
    covariance *= 1 - gain
    positionVariance *= 1 - gain
    // and correct by the speed.
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

  /// Below 0.3 m/s: feeds give standing objects a speed that is not quite 0.
  package var isStanding: Bool { velocity.length < 0.3 }

  /// How fast the direction of motion turns, radians per second, positive clockwise; nil if no turn is evident.
  var turnRate: Double? {
    // Except in races, nobody takes a bend with more than 4 m/s² to the side.
    turn.rate.map { min(max($0, -4 / velocity.length), 4 / velocity.length) }
  }

  /// The box that an object will be in if it goes on turning: first on an arc, then straight on.
  ///
  /// The arc ends when the object has turned by as much again as it has turned so far: a turn is expected to last as
  /// long again as it has lasted.
  ///
  /// - Parameter rate: the turn's rate, radians per second, positive clockwise.
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

  /// The box that the object will be in, enlarged by the possible error.
  ///
  /// - Parameters:
  ///   - later: seconds after the last frame that contained the object.
  ///   - doubt: metres added to each side.
  func box(later: Double, doubt: Double) -> Box {
    // The object may brake or accelerate by 0.5 m/s², and drift sideways at 0.25 m/s.
    let margin = Vector(x: doubt + 0.25 * later * later, y: doubt + 0.25 * later)
    return Box(center: position + velocity * later, forward: forward, half: half + margin)
  }

  /// The box in the last frame.
  var box: Box { Box(center: position, forward: forward, half: half) }
}

/// The direction of motion and its rate: a Kalman filter of an angle and its rate.
private struct Turn {
  private var direction: Double
  private var speed: Double
  private var turning = 0.0
  /// The angle since the turn began.
  private(set) var turned = 0.0
  /// In rad², rad²/s and rad²/s².
  private var directionVariance = 0.0
  private var covariance = 0.0
  private var turningVariance = Self.unknown

  /// The variance of an unknown rate: an object that turns on the spot turns at about 0.3 radians per second.
  private static let unknown = 0.09
  /// How fast the rate changes: a bicycle enters a bend of 50 m within two seconds, which is about (0.05 rad/s)².
  private static let agility = 0.001
  /// The least speed at which motion has a direction, metres per second.
  private static let leastSpeed = 1.0

  init(_ velocity: Vector) { (direction, speed) = (velocity.direction, 0) }

  /// Radians per second; nil if it is within two standard deviations of zero.
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
      // Noise alone may hide the turn for a moment.
      turned -= turned * min(step, 1)
      return
    }
    turned = (turned < 0) == (rate < 0) ? turned + rate * step : rate * step
  }
}
