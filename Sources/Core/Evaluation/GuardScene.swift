public import Domain
public import Encoding
import Geography
public import Traffic

import func Glibc.exp
import func Glibc.log

/// A vehicle beside a recorded road, for trying a guard.
public struct GuardScene: Equatable, Sendable {
  public var site: TrafficGuard.Site
  public var worsening: Worsening

  /// How the feed is made worse than the recording.
  public struct Worsening: Equatable, Sendable {
    /// The additional delay of each frame, seconds.
    public var delay = 0.0
    /// The standard deviation of the error added to each axis of a position, metres.
    public var noise = 0.0
    /// How long an error of position lasts, seconds; 0 if each frame has a new one.
    public var correlation = 0.0
    /// Whether standing objects have no such error, as in feeds that hold their positions.
    public var holdsStanding = false
    /// The constant error of all positions, metres. The seed determines its direction.
    public var bias = 0.0
    /// The share of objects that each frame lacks.
    public var dropouts = 0.0
    public var seed: UInt64 = 1

    public init() {}
  }

  public init(site: TrafficGuard.Site, worsening: Worsening = Worsening()) {
    self.site = site
    self.worsening = worsening
  }

  /// Reads a scene from JSON in the form of FEED.md.
  public init(parsing bytes: [UInt8]) throws(FeedFlaw) {
    let json: JSON
    do { json = try JSON(parsing: bytes, maximumDepth: 6) } catch { throw FeedFlaw("scene", error) }
    let reader = FeedReader(json, "scene")
    let position = try reader.coordinate()
    guard let list = try reader.member("steps").array, (1...16).contains(list.count) else {
      throw FeedFlaw("scene.steps", "1 to 16 steps")
    }
    let length = try reader.number("length_m", in: 1...30)
    var steps: [TrafficGuard.StepPlace] = []
    for (index, step) in list.enumerated() {
      let reader = FeedReader(step, "scene.steps[\(index)]")
      guard let id = StepID(try reader.text("id")), !steps.contains(where: { $0.id == id }) else {
        throw FeedFlaw("\(reader.place).id", "the id of a step, each once")
      }
      guard let side = Side(rawValue: try reader.text("side")) else {
        throw FeedFlaw("\(reader.place).side", "left or right")
      }
      let from = try reader.number("from_m", in: 0...length)
      steps.append(
        .init(
          id: id, side: side, from: from, to: try reader.number("to_m", in: from...length),
          reach: try reader.number("reach_m", in: 0.05...2)))
    }
    site = TrafficGuard.Site(
      position: position, heading: try reader.number("heading_deg", in: -360...360) * .pi / 180, length: length,
      width: try reader.number("width_m", in: 0.5...5), steps: steps)
    worsening = Worsening()
    guard reader.has("feed") else { return }
    let feed = try reader.object("feed")
    func part(_ name: String, _ range: ClosedRange<Double>) throws(FeedFlaw) -> Double {
      feed.has(name) ? try feed.number(name, in: range) : 0
    }
    worsening.delay = try part("delay_s", 0...10)
    worsening.noise = try part("noise_m", 0...20)
    worsening.correlation = try part("correlation_s", 0...60)
    worsening.holdsStanding = try feed.flag("hold_standing")
    worsening.bias = try part("bias_m", 0...20)
    worsening.dropouts = try part("dropouts", 0...1)
    if feed.has("seed") { worsening.seed = UInt64(try feed.integer("seed", in: 0...Int64.max)) }
  }

  /// Whether a frame has an object within 50 km. If none has, the feed's axes may be swapped.
  public func isNear(_ frame: RecordedFrame) -> Bool {
    frame.frame.objects.contains { $0.position.distance(to: site.position) < 50_000 }
  }

  /// Tries the guard on a recording. The recorded stamps and positions count as the truth.
  public func score(_ recording: [RecordedFrame]) -> [StepScore] {
    let road = Road(recording, site: site)
    return site.steps.map { step in
      var score = StepScore(step: step.id)
      let distances = recording.indices.map { road.distances(to: site.box(of: step), at: $0) }
      let verdicts = self.verdicts(for: step, recording)
      score.count(verdicts, distances, times: road.times)
      return score
    }
  }

  /// The guard's verdicts at each frame's time, and every 0.02 s since the previous frame.
  private func verdicts(
    for step: TrafficGuard.StepPlace, _ recording: [RecordedFrame]
  ) -> [[TrafficGuard.Verdict]] {
    var site = site
    site.steps = [step]
    var traffic = TrafficGuard(site)
    var feed = WorseFeed(worsening, at: LocalPlane(at: site.position))
    var coming = recording.makeIterator()
    var next = coming.next()
    var before: Double?
    return recording.map { moment in
      let now = Double(moment.frame.time.microseconds) / 1e6
      // Of a longer pause, only the last second is asked about.
      let questions = Int(min(max(((now - (before ?? now)) / 0.02).rounded(), 1), 50))
      before = now
      return (0..<questions).map { now - 0.02 * Double(questions - 1 - $0) }.map { time in
        while let frame = next, case let arrival = Double(frame.received.microseconds) / 1e6 + worsening.delay,
          arrival <= time
        {
          traffic.take(feed.worse(frame.frame), at: arrival, clock: .none)
          next = coming.next()
        }
        return traffic.verdict(for: step.id, at: time)
      }
    }
  }
}

/// How well a guard did at one step.
public struct StepScore: Equatable, Sendable {
  public let step: StepID
  /// How often something came within 0.75 m of the step, and how often the guard had not held throughout the 2 s
  /// before.
  public var approaches = 0
  public var gaps = 0
  /// Approaches and gaps of objects that had stood within the last 3 s: nothing shows that such an object will pull
  /// out.
  public var departures = 0
  public var departureGaps = 0
  /// For each departure, how long the guard had held without a break when the object came near, seconds; 0 if it did
  /// not hold.
  public var departureWarnings: [Double] = []
  /// When each gap ended, seconds after the recording's beginning.
  public var gapTimes: [Double] = []
  /// In seconds; so are the three below.
  public var time = 0.0
  public var held = 0.0
  public var blind = 0.0
  /// The time during which the guard held although nothing comes within 1.5 m in the next 8 s.
  public var needless = 0.0

  init(step: StepID) { self.step = step }

  fileprivate mutating func count(
    _ verdicts: [[TrafficGuard.Verdict]], _ distances: [[Road.Nearness]], times: [Double]
  ) {
    guard times.count > 1 else { return }
    // The guard gets the first seconds to start up.
    let begin = times[0] + 5
    var near: [String: Double] = [:]
    var stood: [String: Double] = [:]
    var nextNear = Double.infinity
    // Backwards, so that the future is known.
    for index in times.indices.reversed() {
      if distances[index].contains(where: { $0.distance < 1.5 }) { nextNear = times[index] }
      guard times[index] >= begin, index > 0 else { continue }
      let span = min(times[index] - times[index - 1], 1)
      time += span
      let verdict = verdicts[index].last ?? .clear
      if verdict.holds {
        held += span
        if nextNear > times[index] + 8, times[index] + 8 <= times[times.endIndex - 1] { needless += span }
      } else if case .blind = verdict {
        blind += span
      }
    }
    for index in times.indices {
      let now = times[index]
      for object in distances[index] {
        if object.isStanding { stood[object.id] = now }
        guard object.distance < 0.75 else { continue }
        let last = near.updateValue(now, forKey: object.id)
        guard now >= begin + 2, last.map({ now - $0 > 2 }) ?? true else { continue }
        var isGap = false
        var before = index
        while before >= 0, times[before] > now - 2 {
          if verdicts[before].contains(where: { !$0.holds }) { isGap = true }
          before -= 1
        }
        if let time = stood[object.id], now - time < 3 {
          departures += 1
          departureGaps += isGap ? 1 : 0
          let first = verdicts[...index].lastIndex { $0.contains { !$0.holds } }.map { $0 + 1 } ?? 0
          departureWarnings.append(first > index ? 0 : now - times[first])
        } else {
          approaches += 1
          if isGap {
            gaps += 1
            gapTimes.append(now - times[0])
          }
        }
      }
    }
  }

  public var json: JSON {
    [
      "step": .string(step.description), "approaches": .integer(Int64(approaches)), "gaps": .integer(Int64(gaps)),
      "gap_times_s": .array(gapTimes.map { .rounded($0, places: 2) }),
      "departures": .integer(Int64(departures)), "departure_gaps": .integer(Int64(departureGaps)),
      "departure_warnings_s": .array(departureWarnings.map { .rounded($0, places: 2) }),
      "time_s": .rounded(time, places: 2), "held_s": .rounded(held, places: 2),
      "needless_s": .rounded(needless, places: 2), "blind_s": .rounded(blind, places: 2),
    ]
  }
}

/// What was really on the road.
private struct Road {
  let times: [Double]
  private let objects: [[(id: String, box: Box, isStanding: Bool)]]

  struct Nearness {
    let id: String
    let distance: Double
    let isStanding: Bool
  }

  init(_ recording: [RecordedFrame], site: TrafficGuard.Site) {
    let plane = LocalPlane(at: site.position)
    let pose = Pose(position: .zero, heading: site.heading)
    times = recording.map { Double($0.frame.time.microseconds) / 1e6 }
    // Excludes the vehicle itself: the objects whose mean standing place is within the vehicle's body.
    var standing: [[String]: (sum: Vector, count: Double)] = [:]
    for recorded in recording {
      for object in recorded.frame.objects where object.isStanding {
        let place = pose.inner(point: plane.point(of: object.position))
        guard place.length < 40 else { continue }
        let (sum, count) = standing[[recorded.frame.section, object.id]] ?? (.zero, 0)
        standing[[recorded.frame.section, object.id]] = (sum + place, count + 1)
      }
    }
    let own = standing.filter { site.body.distance(to: $0.value.sum * (1 / $0.value.count)) == 0 }
    objects = recording.map { recorded in
      recorded.frame.objects.compactMap { object in
        let place = pose.inner(point: plane.point(of: object.position))
        guard !object.isWalking, place.length < 40 else { return nil }
        guard own[[recorded.frame.section, object.id]] == nil else { return nil }
        let usual = object.category.usualSize
        return (
          // Unique in a section.
          "\(recorded.frame.section)/\(object.id)",
          Box(
            center: place, heading: object.heading - site.heading, length: object.length ?? usual.x,
            width: object.width ?? usual.y), object.isStanding
        )
      }
    }
  }

  func distances(to step: Box, at index: Int) -> [Nearness] {
    objects[index].map { Nearness(id: $0.id, distance: $0.box.distance(to: step), isStanding: $0.isStanding) }
  }
}

/// Makes a feed worse, in a reproducible way.
private struct WorseFeed {
  private let worsening: GuardScene.Worsening
  private let plane: LocalPlane
  private var dice: Dice
  private let bias: Vector
  private var errors: [String: (time: UnixTime, error: Vector)] = [:]

  init(_ worsening: GuardScene.Worsening, at plane: LocalPlane) {
    self.worsening = worsening
    self.plane = plane
    dice = Dice(state: worsening.seed)
    bias = Vector(direction: dice.next() * 2 * .pi) * worsening.bias
  }

  mutating func worse(_ frame: FeedFrame) -> FeedFrame {
    guard worsening.noise > 0 || worsening.bias > 0 || worsening.dropouts > 0 else { return frame }
    var result = frame
    result.objects = []
    for var object in frame.objects where dice.next() >= worsening.dropouts {
      var error = dice.gaussian() * worsening.noise
      let id = "\(frame.section)/\(object.id)"
      if worsening.correlation > 0, let last = errors[id] {
        // A Gauss-Markov process with a constant variance. A frame may have been overtaken.
        let kept = exp(-max(0, frame.time.seconds(since: last.time)) / worsening.correlation)
        error = last.error * kept + error * (1 - kept * kept).squareRoot()
      }
      errors[id] = (frame.time, error)
      if worsening.holdsStanding, object.isStanding { error = .zero }
      object.position = plane.place(of: plane.point(of: object.position) + error + bias) ?? object.position
      result.objects.append(object)
    }
    return result
  }
}

/// SplitMix64 (Steele, Lea and Flood 2014): the same numbers on every machine.
private struct Dice {
  var state: UInt64

  /// From 0 up to 1.
  mutating func next() -> Double {
    state &+= 0x9E37_79B9_7F4A_7C15
    var bits = state
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return Double((bits ^ (bits >> 31)) >> 11) / Double(1 << 53)
  }

  /// Two normally distributed numbers (Box and Muller 1958).
  mutating func gaussian() -> Vector {
    Vector(direction: 2 * .pi * next()) * (-2 * log(1 - next())).squareRoot()
  }
}
