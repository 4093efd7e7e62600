public import Geography

/// The vehicle's place, as far as it is known: surveyed, from a receiver, or from the feed.
///
/// The vehicle's own box in the feed is best: any constant error of the feed affects this box, too.
public struct VehiclePlace: Sendable {
  /// The place and the heading of the vehicle.
  public struct Place: Equatable, Sendable {
    public let position: Coordinate
    /// Radians clockwise from north.
    public let heading: Double
    /// The position's error, metres.
    public let error: Double

    public init(position: Coordinate, heading: Double, error: Double) {
      (self.position, self.heading, self.error) = (position, heading, error)
    }
  }

  /// What a satellite receiver reports.
  public struct Fix: Equatable, Sendable {
    public let position: Coordinate
    /// Metres.
    public let error: Double
    /// Radians clockwise from north; nil if the receiver does not report it or does not move.
    public let course: Double?

    public init(position: Coordinate, error: Double, course: Double?) {
      (self.position, self.error, self.course) = (position, error, course)
    }
  }

  /// How long a fix is valid, seconds.
  public static let fixMemory = 10.0
  /// How much the size of the vehicle's box in the feed may differ from the vehicle's, metres.
  public static let sizeError = 0.5
  /// A box farther than this from its mean place has moved, metres. Two boxes closer than this are one vehicle.
  private static let samePlace = 1.5
  /// How long after its first frame a section's boxes are compared, seconds. By then the section has shown them all.
  private static let beginning = TrafficGuard.oldest
  /// How many frames must show the own box before it counts, and over how many its place is averaged: ten seconds.
  private static let frames = (least: 3, most: 250)

  /// The least length of the mean of the own box's headings, each taken as a unit vector. It allows about 40 degrees of
  /// noise, or one reversed heading in ten. Below it, the heading is unknown.
  private static let leastAgreement = 0.8

  private struct Candidate {
    let section: String
    let id: String
    let position: Coordinate
    let heading: Double
  }

  /// The vehicle's box, and its mean place.
  private struct OwnBox {
    let section: String
    let id: String
    let plane: LocalPlane
    var mean = Vector.zero
    var forward: Vector
    var frames = 1
    let found: Double
    var seen: Double

    init(_ candidate: Candidate, at stamp: Double) {
      (section, id, found, seen) = (candidate.section, candidate.id, stamp, stamp)
      plane = LocalPlane(at: candidate.position)
      forward = Vector(direction: candidate.heading)
    }

    /// - Returns: false if the box has moved away.
    mutating func take(_ candidate: Candidate, at stamp: Double) -> Bool {
      let point = plane.point(of: candidate.position)
      guard (point - mean).length < VehiclePlace.samePlace else { return false }
      frames = min(frames + 1, VehiclePlace.frames.most)
      mean = mean + (point - mean) * (1 / Double(frames))
      let way = Vector(direction: candidate.heading)
      forward = forward + (way - forward) * (1 / Double(frames))
      seen = stamp
      return true
    }
  }

  private let length: Double
  private let width: Double
  private let isInFeed: Bool
  private let usesReceiver: Bool
  private var given: Place?
  private var course: Double?
  private var fixTime = -Double.infinity
  private var own: OwnBox?
  /// The boxes that may be the vehicle, for each section, with the first and the last time that the section was
  /// searched.
  private var candidates: [String: (begun: Double, time: Double, boxes: [Candidate])] = [:]
  private var hasTwins = false

  /// - Parameters:
  ///   - given: the surveyed place; nil if a receiver reports the place.
  ///   - heading: the heading of a vehicle that has not driven yet; nil if only driving will show it.
  ///   - isInFeed: whether to look for the vehicle in the feed, near that place.
  public init(length: Double, width: Double, given: Place?, heading: Double?, isInFeed: Bool) {
    (self.length, self.width, self.given, self.isInFeed) = (length, width, given, isInFeed)
    usesReceiver = given == nil
    course = heading
  }

  /// Takes a receiver's report; nil if it has no fix.
  ///
  /// - Parameter time: seconds, on the clock of `current`.
  public mutating func take(_ fix: Fix?, at time: Double) {
    guard usesReceiver, let fix, fix.error <= TrafficGuard.mostPlaceError else { return }
    if let driven = fix.course { course = driven }
    given = Place(position: fix.position, heading: course ?? 0, error: max(fix.error, TrafficGuard.survey))
    fixTime = time
  }

  /// The vehicle's rough place, for the bridge and as the area to search.
  public func rough(at time: Double) -> Place? {
    guard !usesReceiver || abs(time - fixTime) <= Self.fixMemory else { return nil }
    return given
  }

  /// The vehicle's place; nil if it is unknown.
  public func current(at time: Double) -> Place? {
    guard let rough = rough(at: time) else { return nil }
    guard isInFeed else { return !usesReceiver || course != nil ? rough : nil }
    guard let own, own.frames >= Self.frames.least, abs(time - own.found) >= Self.beginning,
      own.forward.length >= Self.leastAgreement, let position = own.plane.place(of: own.mean)
    else { return nil }
    let heading = own.forward.direction
    // Roadside sensors sometimes mistake the rear for the front. If feed and receiver disagree, nobody knows which one
    // is right. The larger error makes a threat to one side hold both.
    let isReversed = course.map { Vector(direction: $0).along(Vector(direction: heading)) < 0 } ?? false
    return Place(
      position: position, heading: heading, error: TrafficGuard.survey + (isReversed ? TrafficGuard.sidesError : 0))
  }

  /// Why the place is unknown.
  public var blindness: TrafficGuard.Blindness { hasTwins ? .twins : .place }

  /// Looks for the vehicle in a frame: a standing box of its size near its rough place.
  ///
  /// - Parameter time: when the frame arrived, seconds, on the clock of `current`.
  public mutating func look(in frame: FeedFrame, at time: Double) {
    guard isInFeed else { return }
    guard let rough = rough(at: time) else { return forget() }
    let plane = LocalPlane(at: rough.position)
    let boxes = frame.objects.compactMap { object -> Candidate? in
      guard let length = object.length, let width = object.width, object.isStanding,
        abs(length - self.length) <= Self.sizeError, abs(width - self.width) <= Self.sizeError,
        plane.point(of: object.position).length <= rough.error
      else { return nil }
      return Candidate(section: frame.section, id: object.id, position: object.position, heading: object.heading)
    }
    candidates = candidates.filter { abs(time - $0.value.time) <= TrafficGuard.memory }
    if candidates.count >= TrafficGuard.mostSections, candidates[frame.section] == nil { candidates = [:] }
    let begun = candidates[frame.section]?.begun ?? time
    candidates[frame.section] = (begun, time, boxes)
    if let own {
      let isKnown: Bool
      if own.section == frame.section {
        let box = boxes.first { $0.id == own.id }
        let isStillThere = box != nil || frame.objects.contains { $0.id == own.id }
        isKnown = box.map { self.own?.take($0, at: time) == true } ?? !isStillThere
      } else {
        isKnown = true
      }
      if isKnown, let own = self.own, abs(time - own.seen) <= TrafficGuard.memory {
        // A vehicle that parks nearby later changes nothing. A box that a section shows from its beginning may be the
        // vehicle.
        let isRivalled =
          abs(time - begun) < Self.beginning
          && boxes.contains { (own.plane.point(of: $0.position) - own.mean).length > Self.samePlace }
        if isRivalled { (self.own, hasTwins) = (nil, true) }
        return
      }
    }
    own = nil
    let all = candidates.values.flatMap(\.boxes)
    hasTwins = all.contains { $0.position.distance(to: all[0].position) > Self.samePlace }
    if let first = boxes.first, !hasTwins { own = OwnBox(first, at: time) }
  }

  private mutating func forget() { (own, candidates, hasTwins) = (nil, [:], false) }
}
