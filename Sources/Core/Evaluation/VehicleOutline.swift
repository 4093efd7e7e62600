package import Domain

import func Glibc.cos
import func Glibc.hypot
import func Glibc.sin

/// Where the vehicle stood on a survey's map. The surveyor does not note that; the distances of the positions tell
/// where each side's step is.
package struct VehicleOutline: Sendable {
  /// On the surveyor's axes, metres.
  package typealias Place = (x: Double, y: Double)

  /// The steps that were found.
  package let steps: [(side: Side, place: Place)]
  /// The corners of the body, seen from above, clockwise from the left rear. The front is narrower.
  package let body: [Place]

  /// Any distances can be met by a place if there are two of them.
  private static let leastPositions = 3
  /// How far coordinates and distances may disagree, metres (root mean square): half a pace.
  private static let largestMiss = 0.5
  /// From one flank to the other, metres.
  private static let widths = 1.0...4.0
  /// Of a car: its width, metres, and its length by its width.
  private static let (width, slenderness) = (1.9, 2.4)

  /// - Returns: nil if the positions have no coordinates, are too few, or leave open where a step is.
  package init?(_ positions: [SurveyedPosition]) {
    func points(_ side: Side) -> [(place: Place, distance: Double)] {
      positions.filter { $0.side == side }.compactMap { position in position.place.map { ($0, position.distance) } }
    }
    let (left, right) = (Self.places(points(.left)), Self.places(points(.right)))
    if !left.isEmpty, !right.isEmpty {
      let pairs = left.flatMap { left in right.map { (left: left, right: $0) } }
        .filter { Self.widths.contains(Self.length($0.left, $0.right)) }
      // A row of positions beside the vehicle may mirror a step. The mirrored ones are farther apart.
      let pair = pairs.min { Self.length($0.left, $0.right) < Self.length($1.left, $1.right) }
      guard let pair else { return nil }
      steps = [(.left, pair.left), (.right, pair.right)]
      body = Self.body(from: pair.left, to: pair.right)
    } else {
      let side: Side = right.isEmpty ? .left : .right
      let (found, points) = (left + right, points(side))
      guard found.count == 1 else { return nil }
      // The vehicle is where the positions are not.
      let (step, count) = (found[0], Double(points.count))
      let middle = (
        x: points.reduce(0) { $0 + $1.place.x } / count, y: points.reduce(0) { $0 + $1.place.y } / count
      )
      let away = Self.length(middle, step)
      guard away > 0 else { return nil }
      let other = (
        x: step.x + (step.x - middle.x) / away * Self.width, y: step.y + (step.y - middle.y) / away * Self.width
      )
      steps = [(side, step)]
      body = side == .left ? Self.body(from: step, to: other) : Self.body(from: other, to: step)
    }
  }

  private static func length(_ a: Place, _ b: Place) -> Double { hypot(a.x - b.x, a.y - b.y) }

  /// A body whose flanks have these places in their middles.
  private static func body(from left: Place, to right: Place) -> [Place] {
    let width = length(left, right)
    let (across, half) = ((x: (right.x - left.x) / width, y: (right.y - left.y) / width), slenderness / 2)
    // How many widths to the right of the left flank, and in front of the middle.
    return [(0, -half), (0, half - 0.25), (0.2, half), (0.8, half), (1, half - 0.25), (1, -half)].map { right, front in
      (
        left.x + (across.x * right - across.y * front) * width, left.y + (across.y * right + across.x * front) * width
      )
    }
  }

  // MARK: - The place of a step

  /// The places whose distances from the positions are the noted ones, by least squares. Positions in a row have two
  /// such places, one on each side of the row.
  private static func places(_ points: [(place: Place, distance: Double)]) -> [Place] {
    guard points.count >= leastPositions, let nearest = points.min(by: { $0.distance < $1.distance }) else { return [] }
    let found = (0..<16).map { direction -> (place: Place, miss: Double) in
      let angle = Double(direction) * .pi / 8
      let begin = (
        x: nearest.place.x + nearest.distance * cos(angle), y: nearest.place.y + nearest.distance * sin(angle)
      )
      let place = improved(begin, points)
      return (place, miss(place, points))
    }
    .sorted { $0.miss < $1.miss }
    guard let best = found.first, best.miss <= largestMiss else { return [] }
    var places: [Place] = []
    for (place, miss) in found where miss <= best.miss + 0.1 && places.allSatisfy({ length($0, place) > largestMiss }) {
      places.append(place)
    }
    return places
  }

  /// How far the distances from a place are off, metres (root mean square).
  private static func miss(_ place: Place, _ points: [(place: Place, distance: Double)]) -> Double {
    let squares = points.reduce(0) { sum, point in
      let rest = length(place, point.place) - point.distance
      return sum + rest * rest
    }
    return (squares / Double(points.count)).squareRoot()
  }

  /// The nearest place that no small move improves (Levenberg 1944, Marquardt 1963).
  private static func improved(_ begin: Place, _ points: [(place: Place, distance: Double)]) -> Place {
    var (place, damping) = (begin, 1e-3)
    for _ in 0..<50 {
      var (xx, xy, yy, x, y) = (damping, 0.0, damping, 0.0, 0.0)
      for point in points {
        let away = max(length(place, point.place), 1e-9)
        let (dx, dy) = ((place.x - point.place.x) / away, (place.y - point.place.y) / away)
        let rest = point.distance - away
        (xx, xy, yy) = (xx + dx * dx, xy + dx * dy, yy + dy * dy)
        (x, y) = (x + dx * rest, y + dy * rest)
      }
      let determinant = xx * yy - xy * xy
      let next = (x: place.x + (yy * x - xy * y) / determinant, y: place.y + (xx * y - xy * x) / determinant)
      let isBetter = miss(next, points) < miss(place, points)
      if isBetter { place = next }
      damping = isBetter ? max(damping / 10, 1e-9) : damping * 10
    }
    return place
  }
}
