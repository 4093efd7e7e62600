public import Domain

import func Glibc.hypot

/// Decides which step the rider stands in front of, from the frames of the vehicle's beacons.
///
/// It has no clock of its own: callers pass the time, in seconds of any clock. Hearing a frame allocates nothing.
/// RANGING.md derives the rules.
public struct Locator: Sendable {
  private let steps: [Step]
  /// One for each step; so are `unlevelled` and `zones`.
  private var histories: [BeaconHistory]
  /// When each beacon was last heard without a level. Such a beacon is not silent.
  private var unlevelled: [Double]
  /// The last decisions. A new decision needs more evidence than an old one needs to stay.
  private var zones: [Zone]
  private var facing: Int?
  private var facedSince = 0.0
  private var located: Int?
  private var clock = -Double.infinity
  private var scratch: [Double] = []

  public init(steps: [Step]) {
    self.steps = steps
    histories = steps.map { _ in BeaconHistory() }
    unlevelled = steps.map { _ in -.infinity }
    zones = steps.map { _ in .unknown }
    scratch.reserveCapacity(RangingModel.capacity)
  }

  /// Records a frame of this vehicle. A frame whose major belongs to no step is ignored. A frame without a valid RSSI,
  /// or with a measured power that no beacon can have, shows only that its beacon is not silent.
  ///
  /// - Parameter sender: by it, two beacons are told apart that send as one step's. Nil if it is unknown.
  public mutating func hear(_ beacon: IBeacon, from sender: DeviceAddress? = nil, rssi: Int8?, at time: Double) {
    guard time.isFinite, let index = steps.firstIndex(where: { $0.major == beacon.major }) else { return }
    let now = advance(to: time)
    let measuredPower = steps[index].measuredPower ?? beacon.measuredPower
    guard let rssi, (-127..<0).contains(rssi), RangingModel.measuredPowers.contains(Double(measuredPower)) else {
      unlevelled[index] = now
      return
    }
    histories[index].append(rssi: rssi, measuredPower: measuredPower, minor: beacon.minor, from: sender, at: now)
  }

  /// Decides for a point in time. Call it every half second: each decision builds on the previous one.
  public mutating func decide(at time: Double) -> Location {
    let now = advance(to: time)
    let readings = steps.indices.map { reading(of: $0, at: now) }
    let powers = steps.indices.map { power(of: $0, at: now) }

    let last = facing
    facing = lead(powers, least: RangingModel.sideLeast, lone: RangingModel.sideLoneLevel, at: now).flatMap { lead in
      lead.difference >= (lead.index == last ? RangingModel.sideStay : RangingModel.sideBegin) ? lead.index : nil
    }
    // Two senders claim to be one step's beacon, and nobody knows which is genuine.
    let isContested = readings.contains(where: \.isContested)
    if isContested { facing = nil }
    if facing != last { facedSince = now }
    let missing = isContested ? .contested : missing(powers, at: now)
    located = missing == nil ? facing : nil
    return Location(
      time: time, readings: readings, facing: facing.map { steps[$0] }, facedFor: facing == nil ? 0 : now - facedSince,
      missing: missing)
  }

  /// Time goes backwards only if a clock was set back. Then everything heard before is dropped.
  private mutating func advance(to time: Double) -> Double {
    if time < clock - RangingModel.backwards { self = Locator(steps: steps) }
    clock = max(clock, time)
    return clock
  }

  // MARK: - One beacon

  private mutating func reading(of index: Int, at now: Double) -> Location.Reading {
    let history = histories[index]
    let age = history.age(at: now)
    let used = history.frames(within: RangingModel.zoneWindow, of: now)
    var zone = Zone.unknown
    var distance: Location.Distance?
    var rssi: Int?
    let isContested = history.isContested(at: now, in: &scratch)
    if used < RangingModel.least || age > RangingModel.silence || isContested {
      zones[index] = .unknown
    } else {
      history.sortedLevels(newest: used, in: &scratch)
      zones[index] = Self.zone(at: interquartileMean(scratch), after: zones[index])
      // If the rider walks, the window describes the past. The last moment gives the present level.
      let last = max(history.frames(within: RangingModel.momentWindow, of: now), RangingModel.least)
      history.sortedLevels(newest: last, in: &scratch)
      let level = interquartileMean(scratch)
      let error = RangingModel.error80(frames: last)
      if Self.levels(of: zones[index]).overlaps(level - error...level + error) { zone = zones[index] }
      distance = Self.distance(at: level, frames: last)
      let power = Double(history.measuredPower ?? 0)
      // The frames may come from senders with different measured powers, so the sum may be outside the range of an
      // RSSI.
      rssi = min(max(Int((level + power + 0.5).rounded(.down)), -127), -1)
    }
    return Location.Reading(
      step: steps[index], zone: zone, distance: distance, rssi: rssi,
      packets: history.frames(within: RangingModel.window, of: now), age: age.isFinite ? age : nil,
      minor: history.minor, measuredPower: history.measuredPower, isContested: isContested,
      isUnlevelled: isUnlevelled(index, at: now))
  }

  /// Close to an edge the zone is unknown. The previous zone is kept until the level is past half of the band.
  private static func zone(at level: Double, after last: Zone) -> Zone {
    let clear = clearZone(at: level)
    return clear == .unknown && zone(at: level, bands: 0.5) == last ? last : clear
  }

  /// The zone of a level that is past the band of every edge, else unknown.
  package static func clearZone(at level: Double) -> Zone { zone(at: level, bands: 1) }

  private static func zone(at level: Double, bands share: Double) -> Zone {
    let immediateBand = RangingModel.immediateBand * share
    let farBand = RangingModel.farBand * share
    if level >= RangingModel.immediateEdge + immediateBand { return .immediate }
    if level <= RangingModel.farEdge - farBand { return .far }
    if level >= RangingModel.farEdge + farBand, level <= RangingModel.immediateEdge - immediateBand { return .near }
    return .unknown
  }

  private static func levels(of zone: Zone) -> ClosedRange<Double> {
    switch zone {
    case .immediate: RangingModel.immediateEdge ... .infinity
    case .near: RangingModel.farEdge...RangingModel.immediateEdge
    case .far: -.infinity...RangingModel.farEdge
    case .unknown: -.infinity ... .infinity
    }
  }

  /// The distance by the law of free space, with the interval that shadowing and fading leave open.
  private static func distance(at level: Double, frames: Int) -> Location.Distance {
    let half = hypot(RangingModel.shadowing80, RangingModel.error80(frames: frames))
    return Location.Distance(
      metres: RangingModel.metres(at: level), low: RangingModel.metres(at: level + half),
      high: RangingModel.metres(at: level - half))
  }

  // MARK: - Beacons against each other

  /// What is received of a beacon: the number of frames, their mean power as a level, and the certain level.
  private typealias Power = (frames: Int, level: Double, certain: Double)

  /// Whether the beacon is heard without a level. Then few frames with a level do not show that it is weak.
  private func isUnlevelled(_ index: Int, at now: Double) -> Bool { now - unlevelled[index] <= RangingModel.silence }

  /// Nil when the beacon is not heard.
  private mutating func power(of index: Int, at now: Double) -> Power? {
    let history = histories[index]
    let frames = history.frames(within: RangingModel.window, of: now)
    guard frames > 0, history.age(at: now) <= RangingModel.silence else { return nil }
    // If a rider walks up, the window still holds frames from farther away, so the greater of the two levels counts.
    let last = history.frames(within: RangingModel.momentWindow, of: now)
    let moment = last >= RangingModel.momentLeast && last < frames ? certainLevel(of: index, newest: last) : -.infinity
    let certain = max(moment, certainLevel(of: index, newest: frames))
    return (frames, meanPower(scratch), certain)
  }

  /// The certain level of a beacon's newest frames. Leaves the frames' levels in `scratch`.
  private mutating func certainLevel(of index: Int, newest frames: Int) -> Double {
    histories[index].sortedLevels(newest: frames, in: &scratch)
    return interquartileMean(scratch) - RangingModel.error80(frames: frames)
  }

  /// The strongest beacon, its certain level, and the decibels by which it exceeds the next.
  private typealias Lead = (index: Int, certain: Double, difference: Double)

  /// - Parameters:
  ///   - least: how many frames the strongest beacon needs. The others need `sideLeast`.
  ///   - lone: the level that a beacon needs before another's silence counts.
  private func lead(_ powers: [Power?], least: Int, lone: Double, at now: Double) -> Lead? {
    var strongest: (index: Int, power: Power)?
    for (index, power) in powers.enumerated() {
      if let power, power.level > strongest?.power.level ?? -.infinity { strongest = (index, power) }
    }
    guard let (index, own) = strongest, own.frames >= least else { return nil }

    // A vehicle with one step has nothing to compare. Its beacon needs as much as one whose neighbours are silent.
    guard powers.count > 1 || own.frames >= RangingModel.loneFrames && own.level >= lone else { return nil }
    var difference = Double.infinity
    for (other, power) in powers.enumerated() where other != index {
      if let power, power.frames >= RangingModel.sideLeast {
        difference = min(difference, own.level - power.level)
      } else if isUnlevelled(other, at: now) {
        return nil
      } else if own.frames >= RangingModel.loneFrames, power != nil || own.level >= lone {
        let measuredPower =
          steps[other].measuredPower ?? histories[other].measuredPower ?? histories[index].measuredPower ?? 0
        let floor = RangingModel.loneFloor - Double(measuredPower)
        difference = min(difference, own.level - max(power?.level ?? floor, floor))
      } else {
        return nil
      }
    }
    return (index, own.certain, difference)
  }

  /// The first condition of being located that is not met. Only the faced step can be located.
  private mutating func missing(_ powers: [Power?], at now: Double) -> Location.Missing? {
    guard let lead = lead(powers, least: RangingModel.locatedLeast, lone: RangingModel.locatedLoneLevel, at: now) else {
      if steps.indices.contains(where: { isUnlevelled($0, at: now) }) { return .unlevelled }
      guard let strongest = powers.lazy.compactMap(\.self).max(by: { $0.level < $1.level }) else { return .silent }
      return strongest.frames < RangingModel.loneFrames
        ? .frames : .tooFar(by: max(RangingModel.locatedLoneLevel - strongest.level, 0))
    }
    let short = RangingModel.locatedBeginLevel - lead.certain
    let stays = lead.index == located
    if lead.certain < (stays ? RangingModel.locatedStayLevel : RangingModel.locatedBeginLevel) {
      let isClear = lead.index == facing && lead.difference >= RangingModel.locatedBeginDifference
      return isClear && short <= RangingModel.body ? .bodyBetween(by: short) : .tooFar(by: short)
    }
    let difference = stays ? RangingModel.locatedStayDifference : RangingModel.locatedBeginDifference
    guard lead.index == facing, lead.difference >= difference else { return .undecidedSide }
    let frames = histories[lead.index].frames(within: RangingModel.window, of: now)
    let last = histories[lead.index].frames(within: RangingModel.momentWindow, of: now)
    guard last >= RangingModel.momentLeast else { return .frames }
    return isSupported(lead.index, frames) && isSteady(lead.index, last, of: frames) ? nil : .steadiness
  }

  /// Whether enough frames are strong. This keeps a burst of interference, or of other senders' frames, from deciding.
  private func isSupported(_ index: Int, _ frames: Int) -> Bool {
    let strong = histories[index].frames(newest: frames, atLeast: RangingModel.supportLevel)
    return strong >= RangingModel.locatedLeast && Double(strong) >= RangingModel.locatedShare * Double(frames)
  }

  /// Whether the rider is still there. The level falls when a rider walks away. A fall does not count if the level is
  /// still so high that the rider can only have turned.
  private mutating func isSteady(_ index: Int, _ last: Int, of frames: Int) -> Bool {
    guard last < frames else { return true }
    let before = histories[index].meanLevel(of: last..<frames)
    return histories[index].meanLevel(of: 0..<last) >= before - RangingModel.momentFall
      || certainLevel(of: index, newest: last) >= RangingModel.momentNearLevel
  }
}
