public import Domain
public import Geography

/// Judges whether something on the road is moving towards a step.
///
/// It has no clock of its own: callers pass the time, in seconds since 1970 on this computer's clock. FEED.md derives
/// the rules.
public struct TrafficGuard: Sendable {
  /// Where the vehicle stands, and where its steps are.
  public struct Site: Equatable, Sendable {
    /// The middle of the vehicle.
    public var position: Coordinate
    /// The direction that it points in: radians clockwise from north.
    public var heading: Double
    /// Metres.
    public var length: Double
    public var width: Double
    public var steps: [StepPlace]
    /// The error of the vehicle's place, and its constant difference from the feed's positions, metres.
    public var error: Double

    public init(
      position: Coordinate, heading: Double, length: Double, width: Double, steps: [StepPlace],
      error: Double = TrafficGuard.survey
    ) {
      self.position = position
      self.heading = heading
      self.length = length
      self.width = width
      self.steps = steps
      self.error = error
    }

    /// The area of an open step, in the vehicle's frame.
    public func box(of step: StepPlace, margin: Double = 0) -> Box {
      let reach = step.reach + margin
      let side = step.side == .right ? 1.0 : -1
      return Box(
        center: Vector(x: length / 2 - (step.from + step.to) / 2, y: side * (width + reach) / 2),
        forward: .init(x: 1, y: 0),
        half: Vector(x: (step.to - step.from) / 2, y: reach / 2))
    }

    package var body: Box {
      Box(center: .zero, forward: Vector(x: 1, y: 0), half: Vector(x: length / 2, y: width / 2))
    }
  }

  /// The place of a step on the vehicle, and the space that the open step takes.
  public struct StepPlace: Equatable, Sendable {
    public var id: StepID
    public var side: Side
    /// Where the step begins and ends, metres behind the vehicle's front.
    public var from: Double
    public var to: Double
    /// How far the open step sticks out, metres.
    public var reach: Double

    public init(id: StepID, side: Side, from: Double, to: Double, reach: Double) {
      self.id = id
      self.side = side
      self.from = from
      self.to = to
      self.reach = reach
    }
  }

  /// What is known about the road beside a step.
  public enum Verdict: Equatable, Sendable {
    case clear
    /// Something will reach the step after this many seconds.
    case approaching(RoadObject.Category, seconds: Double)
    /// Something stands at the step.
    case obstructed(RoadObject.Category)
    /// Too little is known for any other verdict.
    case blind(Blindness)

    public var holds: Bool {
      switch self {
      case .approaching, .obstructed: true
      case .clear, .blind: false
      }
    }
  }

  /// Why the guard cannot see.
  public enum Blindness: String, Sendable, CaseIterable {
    case silent = "the feed is silent"
    case late = "the feed is late"
    case slow = "the feed has too few frames"
    case clock = "the feed's clock is not known well enough"
    case beginning = "the feed has only begun"
    case place = "the vehicle's place is not known"
    case twins = "two objects in the feed may be the vehicle"
    case elsewhere = "the feed shows nothing near the vehicle"
    case crowded = "the feed has more than can be followed"
  }

  private var site: Site
  private let plane: LocalPlane
  private var pose: Pose
  private var tracks: [Key: Track] = [:]
  private var sections: [String: Section] = [:]
  /// The newest stamp in all sections, on the feed's clock.
  private var newest = -Double.infinity
  /// When the last frame arrived, on this clock.
  private var last: Double?
  /// When something in a frame last found no room, on this clock.
  private var overflow = -Double.infinity
  private var lateness = 0.0
  private var clock = ClockOffset.Estimate.none
  private var states: [State]

  private struct Key: Hashable {
    let section: String
    let id: String
    /// An id may have two tracks, if it moved to another object, or if one frame shows it elsewhere.
    var isSecond = false
  }

  private struct Section {
    /// The newest stamp, on the feed's clock, among frames that were in time: one wrong stamp from the future would
    /// hide everything after it.
    var newest = -Double.infinity
    /// The arrivals within the last second, and the last arrival that was in time, on this clock. Empty after the
    /// section was forgotten.
    var arrivals: [Double] = []
    var lastInTime = -Double.infinity
    /// Whether the section showed something near the vehicle, or the vehicle itself. Only such a section covers this
    /// place.
    var isHere = false
    var noise: PositionNoise
    /// For each step, the number of consecutive frames in which nothing moved towards it.
    var clearFrames: [Int]

    init(steps: Int, noise: PositionNoise = PositionNoise()) {
      self.noise = noise
      clearFrames = [Int](repeating: 0, count: steps)
    }
  }

  private struct State {
    var verdict = Verdict.blind(.beginning)
    /// For each section, the number of consecutive frames with an approaching object whose id is new in each frame.
    var strangeFrames: [String: Int] = [:]
  }

  /// How far ahead the guard looks, seconds. A step takes about as long to come out and be stood upon.
  public static let horizon = 4.0
  /// How late a frame may be, and how long there may be no frame, seconds.
  public static let oldest = 0.7
  public static let silence = 0.3
  /// The least frames per second, counted over the last second.
  public static let leastRate = 10.0
  /// How long an object that is missing from the frames is carried on, seconds.
  public static let memory = 1.5
  /// A section without a frame for this long is forgotten, seconds.
  public static let sectionMemory = 60.0
  /// An object counts once this many frames contain it: nobody knows how accurate a single position is.
  public static let leastFrames = 3
  /// The space beside a step that must be free, metres.
  public static let clearance = 1.0
  /// The constant difference that a surveyed place and the feed's positions may have, metres.
  public static let survey = 0.25
  /// The largest usable error of the vehicle's place, metres.
  public static let mostPlaceError = 10.0
  /// The distance from the vehicle within which objects count as near, metres.
  public static let nearby = 60.0
  /// With a larger error than this, nobody can tell on which side of the vehicle something passes, metres.
  public static let sidesError = 1.0
  /// The most sections and tracks: a hostile feed must not take all the processor time.
  public static let mostSections = 16
  public static let mostTracks = 400

  public init(_ site: Site) {
    self.site = site
    plane = LocalPlane(at: site.position)
    pose = Pose(position: .zero, heading: site.heading)
    states = site.steps.map { _ in State() }
  }

  /// Sets the vehicle's present place. Knowledge of the road is kept.
  public mutating func place(at position: Coordinate, heading: Double, error: Double) {
    let point = plane.point(of: position)
    (site.position, site.heading, site.error) = (position, heading, error)
    // The plane is accurate for some hundred metres.
    if point.length < 200 { pose = Pose(position: point, heading: heading) } else { self = TrafficGuard(site) }
  }

  // MARK: - Frames

  /// Takes a frame from the feed.
  ///
  /// - Parameters:
  ///   - time: when the frame arrived.
  ///   - clock: how far the feed's clock is ahead of this one.
  public mutating func take(_ frame: FeedFrame, at time: Double, clock: ClockOffset.Estimate) {
    let stamp = Double(frame.time.microseconds) / 1e6
    sleep(at: time)
    var section = sections[frame.section] ?? Section(steps: site.steps.count)
    // The frame was overtaken, or its clock stands still: it has nothing new.
    guard stamp > max(section.newest, newest - Self.sectionMemory) else { return }
    self.clock = clock
    lateness = time + clock.offset - stamp
    last = time
    // This clock may have been set back.
    section.arrivals.removeAll { $0 <= time - 1 || $0 > time }
    section.arrivals.append(time)
    // A late frame shows this, too.
    if !section.isHere {
      section.isHere = frame.objects.contains { [plane, pose] in
        (plane.point(of: $0.position) - pose.position).length < Self.nearby
      }
    }
    let isInTime = abs(lateness) <= Self.oldest
    if isInTime {
      (section.newest, section.lastInTime) = (stamp, time)
      newest = max(newest, stamp)
    }
    if isInTime || section.isHere, !keep(section, frame.section) { overflow = time }
    // Keeps the tracks: a neighbouring section whose clock is wrong must not hide approaching objects.
    guard isInTime else {
      for index in states.indices { begin(index) }
      return
    }
    guard sections[frame.section] != nil else { return }
    for object in frame.objects where !object.isWalking {
      follow(object, in: frame.section, at: stamp, time)
    }
    // Objects whose id changes in each frame must not take all the room. Tracks with too few frames go first.
    let isFilling = tracks.count > Self.mostTracks / 2
    tracks = tracks.filter { key, track in
      let memory = isFilling && track.frames < Self.leastFrames ? 0 : Self.memory
      return sections[key.section].map { 0...memory ~= $0.newest - track.time } ?? false
    }
    for index in states.indices { settle(index, in: frame.section, at: time) }
  }

  /// Forgets sections that have been silent for a while, but keeps their position noise.
  private mutating func sleep(at time: Double) {
    for (name, section) in sections {
      guard let last = section.arrivals.last, abs(time - last) > Self.sectionMemory else { continue }
      sections[name] = Section(steps: site.steps.count, noise: section.noise)
    }
  }

  /// - Returns: false if there are too many sections.
  private mutating func keep(_ section: Section, _ name: String) -> Bool {
    if sections[name] == nil, sections.count >= Self.mostSections {
      guard let asleep = sections.first(where: { $0.value.arrivals.isEmpty })?.key else { return false }
      sections[asleep] = nil
    }
    sections[name] = section
    return true
  }

  private mutating func begin(_ index: Int) {
    states[index] = State()
    for name in sections.keys { sections[name]?.clearFrames[index] = 0 }
  }

  private mutating func follow(_ object: RoadObject, in section: String, at stamp: Double, _ time: Double) {
    let point = plane.point(of: object.position)
    // Nothing farther away can arrive within the horizon, even if it accelerates.
    guard (point - pose.position).length < Self.nearby + 2 * Self.horizon * object.velocity.length else { return }
    let noise = sections[section]?.noise.deviation ?? PositionNoise().deviation
    var place = Key(section: section, id: object.id)
    var oldest = Double.infinity
    for key in [place, Key(section: section, id: object.id, isSecond: true)] {
      guard var track = tracks[key] else {
        if oldest > -.infinity { (place, oldest) = (key, -.infinity) }
        continue
      }
      let before = track.uncertainty
      if let residual = track.follow(object, at: point, time: stamp, noise: noise) {
        tracks[key] = track
        // Many feeds hold or average a standing object's position. Its error tells nothing about moving objects.
        if !track.isStanding { sections[section]?.noise.take(residual, predictedWithin: before) }
        return
      }
      if track.time < oldest { (place, oldest) = (key, track.time) }
    }
    guard tracks[place] != nil || tracks.count < Self.mostTracks else {
      overflow = time
      return
    }
    tracks[place] = Track(object, at: point, time: stamp, noise: noise)
  }

  private mutating func settle(_ index: Int, in section: String, at time: Double) {
    var threat = threat(at: index, at: time)
    // If a feed gives the same bicycle another id in each frame, the bicycle must still count.
    let stranger = threat == nil ? self.threat(at: index, at: time, ofNew: section) : nil
    let strangeFrames = stranger == nil ? 0 : states[index].strangeFrames[section, default: 0] + 1
    states[index].strangeFrames[section] = strangeFrames == 0 ? nil : strangeFrames
    if strangeFrames >= Self.leastFrames { threat = stranger }
    if let threat {
      for name in sections.keys { sections[name]?.clearFrames[index] = 0 }
      states[index].verdict = threat
    } else if stranger != nil {
      // The stranger does not hold the step yet, but the frame is not clear either.
      sections[section]?.clearFrames[index] = 0
    } else {
      sections[section]?.clearFrames[index] += 1
      let isClear = sections.values.allSatisfy { !$0.isHere || $0.clearFrames[index] >= Self.leastFrames }
      if isClear { states[index].verdict = .clear }
    }
  }

  // MARK: - Judging

  /// The present verdict for a step. A step that the site does not have is clear.
  public func verdict(for step: StepID, at time: Double) -> Verdict {
    guard let index = site.steps.firstIndex(where: { $0.id == step }) else { return .clear }
    if let threat = threat(at: index, at: time) { return threat }
    if let blindness = blindness(at: time) { return .blind(blindness) }
    return states[index].verdict
  }

  private func blindness(at time: Double) -> Blindness? {
    guard let last else { return .silent }
    if clock.uncertainty > 0.2 || lateness < -clock.uncertainty - 0.1 { return .clock }
    if lateness > Self.oldest { return .late }
    func isSilent(since last: Double) -> Bool { time - last > Self.silence || time < last }
    if isSilent(since: last) { return .silent }
    if abs(time - overflow) <= 1 { return .crowded }
    let here = sections.values.filter(\.isHere)
    if here.isEmpty { return .elsewhere }
    for section in here where isSilent(since: section.lastInTime) {
      return section.arrivals.last.map(isSilent) ?? true ? .silent : .late
    }
    return here.contains { Double($0.arrivals.count) < Self.leastRate } ? .slow : nil
  }

  /// The worst threat to a step. If the vehicle's place is too vague to tell the sides apart, the worst threat to any
  /// step.
  ///
  /// - Parameter section: if set, considers only the objects in this section's last frame that are in too few frames so
  ///   far; nil considers the objects that are in enough frames.
  private func threat(at index: Int, at time: Double, ofNew section: String? = nil) -> Verdict? {
    guard site.error > Self.sidesError else { return threat(to: site.steps[index], at: time, ofNew: section) }
    var worst: Verdict?
    for step in site.steps {
      switch (worst, threat(to: step, at: time, ofNew: section)) {
      case (.approaching(_, let first)?, .approaching(let category, let later)?) where later < first:
        worst = .approaching(category, seconds: later)
      case (.approaching?, _): break
      case (_, let threat?): worst = threat
      case (_, nil): break
      }
    }
    return worst
  }

  /// The first threat to a step, if any.
  private func threat(to step: StepPlace, at time: Double, ofNew section: String?) -> Verdict? {
    let area = area(of: step)
    let now = time + clock.offset
    var first: (time: Double, category: RoadObject.Category)?
    var standing: RoadObject.Category?
    let newest = section.flatMap { sections[$0]?.newest }
    for (key, track) in tracks {
      if let section {
        guard track.frames < Self.leastFrames, key.section == section, track.time == newest else { continue }
      } else {
        guard track.frames >= Self.leastFrames else { continue }
      }
      let age = now - track.time
      // If frames still come, an object missing from them has left. If none come, nobody knows.
      guard age >= -Self.oldest, age <= Self.horizon else { continue }
      if track.isStanding {
        if track.box.touches(area), !isOwn(track) { standing = track.category }
      } else if let arrival = arrival(of: track, at: area, after: max(0, age)), arrival < first?.time ?? .infinity {
        first = (arrival, track.category)
      }
    }
    if let first { return .approaching(first.category, seconds: first.time) }
    return standing.map(Verdict.obstructed)
  }

  /// The area that must stay free, in the plane.
  private func area(of step: StepPlace) -> Box {
    let box = site.box(of: step, margin: Self.clearance)
    return Box(center: pose.outer(point: box.center), forward: pose.outer(way: box.forward), half: box.half)
  }

  /// Whether the object is the vehicle itself, which the feed also shows. Another object's middle cannot be nearer to
  /// the body than half its own width.
  private func isOwn(_ track: Track) -> Bool {
    let overlap = min(track.half.x, track.half.y) - Self.survey - 2 * track.uncertainty
    return site.body.distance(to: pose.inner(point: track.position)) <= max(0, site.error - Self.survey, overlap)
  }

  /// Seconds until an object may touch an area; nil if it cannot within the horizon.
  private func arrival(of track: Track, at area: Box, after age: Double) -> Double? {
    let doubt = 2 * track.uncertainty + max(site.error, Self.survey)
    let reach = area.half.length + track.half.length + 2 * doubt + 12
    guard (area.center - track.position).length <= reach + track.velocity.length * (age + Self.horizon) else {
      return nil
    }
    let rate = track.turnRate
    var later = 0.0
    while later <= Self.horizon {
      if track.box(later: age + later, doubt: doubt).touches(area) { return later }
      // The bend may go on, or end.
      if let rate, track.box(later: age + later, turning: rate, doubt: doubt).touches(area) { return later }
      later += 0.1
    }
    return nil
  }
}

/// The error of a feed's positions, estimated from their distance to the predictions.
struct PositionNoise: Sendable {
  /// Per axis, m². It begins with the value of a good feed, weighted as 100 samples.
  private var variance = 0.25
  private var count = 100.0

  var deviation: Double { variance.squareRoot() }

  /// - Parameter uncertainty: the prediction's standard deviation, metres.
  mutating func take(_ residual: Vector, predictedWithin uncertainty: Double) {
    let square = (residual.x * residual.x + residual.y * residual.y) / 2 - uncertainty * uncertainty
    // About a minute of a street with ten objects.
    count = min(count + 1, 10_000)
    // An outlier shows that something happened; it says little about the accuracy.
    variance += (min(max(square, 0), 16 * variance + 0.01) - variance) / count
    variance = max(variance, 0.01)
  }
}
