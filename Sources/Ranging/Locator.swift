package import StepDomain

/// Which step the rider stands in front of, from what is heard of the vehicle's beacons.
///
/// Pure: time is passed in, in seconds of any clock that does not run backwards for long. Hearing a frame allocates
/// nothing. `RangingModel` has the numbers and where they come from.
package struct Locator: Sendable {
  private let model: RangingModel
  private var beacons: [HeardLevels]
  private var steps: [Step]
  /// The last decisions: it takes more to come to one than to stay with it.
  private var facing: Int?
  private var located: Int?
  private var last = -Double.infinity
  /// Reused, so that a decision need not allocate either.
  private var scratch: [Double] = []

  package init(steps: [Step], model: RangingModel = RangingModel()) {
    self.model = model
    self.steps = steps
    beacons = steps.map { _ in HeardLevels(capacity: model.capacity) }
    scratch.reserveCapacity(model.capacity)
  }

  /// Takes note of a frame of this vehicle; frames without a valid RSSI and of unknown majors say nothing.
  ///
  /// - Parameter time: seconds. A clock that went back by more than a second began anew, and so does the locator.
  package mutating func hear(_ beacon: IBeacon, rssi: Int8?, at time: Double) {
    guard let rssi, let index = steps.firstIndex(where: { $0.major == beacon.major }) else { return }
    if time < last - model.backwardJump { forget() }
    last = max(last, time)
    beacons[index].append(
      level: Double(rssi) - Double(beacon.measuredPower), minor: beacon.minor, power: beacon.measuredPower, at: last)
  }

  private mutating func forget() {
    for index in beacons.indices { beacons[index].removeAll() }
    (facing, located, last) = (nil, nil, -.infinity)
  }

  /// What can be said at a time: to be asked at regular intervals (half a second), because the next answer builds
  /// on this one.
  package mutating func decide(at time: Double) -> Location {
    let readings = steps.indices.map { reading(of: $0, at: time) }

    var side: Int?
    if let (stronger, difference) = comparison(model.sideWindow, least: model.sideMinimum, at: time),
      difference >= (stronger == facing ? model.sideStay : model.sideBegin)
    {
      side = stronger
    }

    var here: Int?
    if let side, let (stronger, difference) = comparison(model.locatedWindow, least: model.locatedMinimum, at: time),
      stronger == side, time - beacons[stronger].newest <= model.locatedAge
    {
      let level = beacons[stronger].power(since: time - model.locatedWindow, clip: model.clip, &scratch)
      let stays = stronger == located
      if level >= (stays ? model.locatedStayLevel : model.locatedBeginLevel),
        difference >= (stays ? model.locatedStayDifference : model.locatedBeginDifference)
      {
        here = stronger
      }
    }
    (facing, located) = (side, here)
    return Location(
      time: time, readings: readings, facing: side.map { steps[$0] }, isLocated: here != nil)
  }

  private mutating func reading(of index: Int, at time: Double) -> Location.Reading {
    let count = beacons[index].gather(
      since: time - model.zoneWindow, atLeast: model.zoneEnough, since: time - model.zoneReach, into: &scratch)
    let age = time - beacons[index].newest
    guard count >= model.zoneMinimum, age <= model.silence else {
      return Location.Reading(
        step: steps[index], zone: .unknown, distance: nil, rssi: nil, packets: age <= model.silence ? count : 0,
        age: age.isFinite ? age : nil, minor: beacons[index].minor, measuredPower: beacons[index].measuredPower)
    }
    let level = interquartileMean(&scratch)
    return Location.Reading(
      step: steps[index], zone: model.zone(of: level), distance: model.distance(at: level),
      rssi: level + Double(beacons[index].measuredPower ?? 0), packets: count, age: age,
      minor: beacons[index].minor, measuredPower: beacons[index].measuredPower)
  }

  /// The beacon that is heard more strongly than all others, and by how many decibels.
  private mutating func comparison(
    _ window: Double, least: Int, at time: Double
  ) -> (stronger: Int, difference: Double)? {
    var best: (index: Int, power: Double)?
    var second: Double?
    var silent: [Int] = []
    for index in beacons.indices {
      let count = beacons[index].count(since: time - window)
      guard count > 0 else {
        silent.append(index)
        continue
      }
      // Too little to compare with, and too much to call it silent.
      guard count >= least else { return nil }
      let power = beacons[index].power(since: time - window, clip: model.clip, &scratch)
      if power > best?.power ?? -.infinity {
        second = best?.power ?? second
        best = (index, power)
      } else {
        second = max(second ?? power, power)
      }
    }
    guard let best else { return nil }
    if !silent.isEmpty {
      // A beacon that is not heard is evidence only while another is heard well.
      guard beacons[best.index].count(since: time - window) >= max(model.missingMinimum, least),
        best.power >= model.missingLevel
      else { return nil }
      let floor = model.sensitivity - Double(beacons[best.index].measuredPower ?? 0)
      second = max(second ?? floor, floor)
    }
    return second.map { (best.index, best.power - $0) }
  }
}

/// What the locator says of one moment.
package struct Location: Sendable, Equatable {
  /// Seconds, as it was asked.
  package let time: Double
  /// Of every step, in the vehicle's order.
  package let readings: [Reading]
  /// The step on the rider's side; nil when that is open.
  package let facing: Step?
  /// Whether the rider is in reach of that step and of no other: enough to open it.
  package let isLocated: Bool

  package struct Reading: Sendable, Equatable {
    package let step: Step
    package let zone: Zone
    /// Metres.
    package let distance: Double?
    /// Of the frames that the zone rests on, dBm.
    package let rssi: Double?
    package let packets: Int
    /// Seconds since the last frame; nil when there was none.
    package let age: Double?
    /// Of the last frame.
    package let minor: UInt16?
    /// Of the last frame, dBm.
    package let measuredPower: Int8?
  }

  package func reading(of step: Step) -> Reading? { readings.first { $0.step == step } }
}
