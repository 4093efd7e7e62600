import Geography

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

  /// How well a feed knows speeds, m/s: a tenth of what a pedestrian has, and what trackers of radar and lidar reach.
  private static let velocityNoise = 0.3
  /// How fast speeds change: (1 m/s²)² for 1 s.
  private static let agility = 1.0

  init(_ object: RoadObject, at position: Vector, time: Double, noise: Double) {
    category = object.category
    half = Self.half(of: object)
    forward = Vector(direction: object.heading)
    self.time = time
    self.position = position
    velocity = object.velocity
    positionVariance = noise * noise
    velocityVariance = Self.velocityNoise * Self.velocityNoise
  }

  private static func half(of object: RoadObject) -> Vector {
    let usual = object.category.usualSize
    return Vector(x: (object.length ?? usual.x) / 2, y: (object.width ?? usual.y) / 2)
  }

  /// Follows the object to the next frame.
  ///
  /// - Parameter noise: standard deviation of a position in the feed, metres.
  /// - Returns: how far the position is from where the one before and the feed's speed would have it; nil when this cannot
  ///   be the same object: its id was given to another one.
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
    category = object.category
    half = Self.half(of: object)
    forward = Vector(direction: object.heading)
    self.time = time
    frames += 1
    return residual
  }

  /// Standard deviation of the position, metres.
  var uncertainty: Double { max(0, positionVariance).squareRoot() }

  /// Below 0.3 m/s: the feed's speed of what stands is not quite 0.
  var isStanding: Bool { velocity.length < 0.3 }

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
