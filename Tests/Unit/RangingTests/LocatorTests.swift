import Domain
import Encoding
import Foundation
import TestSupport
import Testing

@testable import Ranging

@Suite("Locator") struct LocatorTests {
  static let steps = [
    Step(id: StepID("left")!, side: .left, major: 1), Step(id: StepID("right")!, side: .right, major: 2),
  ]
  let uuid = Domain.UUID(high: 1, low: 2)

  func beacon(_ major: UInt16, minor: UInt16 = 7, power: Int8 = -59) -> IBeacon {
    IBeacon(uuid: uuid, major: major, minor: minor, measuredPower: power)
  }

  /// Frames of both beacons at 10 Hz, decisions at 2 Hz.
  func decide(
    _ locator: inout Locator, from start: Double, for seconds: Double, left: Int8?, right: Int8?
  ) -> [Location] {
    var decisions: [Location] = []
    for tenth in 0..<Int(seconds * 10) {
      let time = start + Double(tenth) / 10
      if tenth % 5 == 0 { decisions.append(locator.decide(at: time)) }
      if let left { locator.hear(beacon(1), rssi: left, at: time) }
      if let right { locator.hear(beacon(2), rssi: right, at: time) }
    }
    return decisions
  }

  @Test("7 dB between the beacons decide no side, and 2 dB keep none")
  func sides() {
    for (difference, side) in [(4, nil), (7, nil), (9, .left)] as [(Int8, Side?)] {
      var locator = Locator(steps: Self.steps)
      let decisions = decide(&locator, from: 0, for: 10, left: -60, right: -60 - difference)
      #expect(decisions.last?.facing?.side == side, "\(difference) dB")
    }
    var locator = Locator(steps: Self.steps)
    _ = decide(&locator, from: 0, for: 10, left: -60, right: -69)
    // Longer than the window, so that it holds these levels alone.
    #expect(decide(&locator, from: 10, for: 10, left: -60, right: -64).last?.facing?.side == .left)
    #expect(decide(&locator, from: 20, for: 10, left: -60, right: -62).last?.facing == nil)
  }

  /// Sequences and decisions of the reference implementation, in Python, from which this one was written.
  static let sequences: [JSON] = {
    try! Repository.json("Tests/Fixtures/ranging.json")["sequences"]!.array!
  }()

  @Test("decides as the reference does", arguments: sequences.indices)
  func reference(index: Int) throws {
    let sequence = Self.sequences[index]
    var locator = Locator(steps: Self.steps)
    let packets = sequence["packets"]!.array!
    var fed = 0
    for tick in sequence["ticks"]!.array! {
      while fed < tick["packets_fed"]!.integer! {
        let packet = packets[fed]
        locator.hear(
          beacon(UInt16(packet["major"]!.integer!), power: Int8(packet["power"]!.integer!)),
          rssi: Int8(exactly: packet["rssi"]!.integer!), at: packet["time_s"]!.double!)
        fed += 1
      }
      let now = tick["now_s"]!.double!
      let location = locator.decide(at: now)
      #expect((location.facing.map { Int64($0.major) }) == tick["side"]?.integer, "side at \(now)")
      #expect(
        (location.isLocated ? location.facing.map { Int64($0.major) } : nil) == tick["located"]?.integer, "\(now)")
      for reading in location.readings {
        let expected = tick["steps"]!["\(reading.step.major)"]!
        #expect(reading.zone.rawValue == expected["zone"]?.string, "zone of \(reading.step.id) at \(now)")
        #expect(reading.rssi.map(Int64.init) == expected["rssi_dbm"]?.integer)
        #expect(Int64(reading.packets) == expected["packets"]?.integer)
        #expect(close(reading.distance?.metres, expected["distance_m"]?.double))
        #expect(close(reading.distance?.low, expected["distance_low_m"]?.double))
        #expect(close(reading.distance?.high, expected["distance_high_m"]?.double))
        #expect(close(reading.age, expected["age_s"]?.double))
      }
    }
  }

  func close(_ a: Double?, _ b: Double?) -> Bool {
    guard let a, let b else { return a == nil && b == nil }
    return abs(a - b) < 0.002 * max(1, abs(b))
  }

  @Test("at a step: immediate, faced and located within a second, and it stays so")
  func standing() {
    var locator = Locator(steps: Self.steps)
    let decisions = decide(&locator, from: 0, for: 10, left: -50, right: -72)
    #expect(!decisions[0].isLocated)
    #expect(decisions.dropFirst(2).allSatisfy { $0.isLocated && $0.facing?.id == Self.steps[0].id })
    #expect(decisions.last!.readings[0].zone == .immediate)
  }

  @Test("between two beacons that are equally strong nobody is located")
  func between() {
    var locator = Locator(steps: Self.steps)
    let decisions = decide(&locator, from: 0, for: 10, left: -60, right: -62)
    #expect(decisions.allSatisfy { !$0.isLocated && $0.facing == nil })
  }

  @Test(
    "says what is missing",
    arguments: [
      (-50, -72, nil), (-62, -75, nil), (nil, nil, .silent), (-60, -62, .undecidedSide),
      // Within what a body takes, where the side is clear; by more, and where it is not.
      (-70, -85, .bodyBetween(by: 4)), (-75, -90, .tooFar(by: 9)), (-70, -76, .tooFar(by: 4)),
      // The other one is not heard: it takes 0 dB.
      (-64, nil, .tooFar(by: 5)),
    ] as [(Int8?, Int8?, Location.Missing?)])
  func missing(left: Int8?, right: Int8?, missing: Location.Missing?) throws {
    var locator = Locator(steps: Self.steps)
    let last = try #require(decide(&locator, from: 0, for: 10, left: left, right: right).last)
    let said = last.missing.map { said -> Location.Missing in
      switch said {
      case .tooFar(let short): .tooFar(by: short.rounded())
      case .bodyBetween(let short): .bodyBetween(by: short.rounded())
      default: said
      }
    }
    #expect(said == missing)
    #expect(last.isLocated == (missing == nil))
  }

  @Test(
    "a beacon that is heard without a level is not silent, so nobody is located at another step",
    arguments: [(nil, -59), (0, -59), (3, -59), (-45, 0), (-45, -19), (-45, -101), (-45, 127)] as [(Int8?, Int8)])
  func unlevelled(left: Int8?, power: Int8) throws {
    var locator = Locator(steps: Self.steps)
    for tenth in 0..<100 {
      locator.hear(beacon(1, power: power), rssi: left, at: Double(tenth) / 10)
      locator.hear(beacon(2), rssi: -50, at: Double(tenth) / 10)
    }
    let location = locator.decide(at: 10)
    #expect(location.facing == nil && location.missing == .unlevelled)
    #expect(location.readings.map(\.isUnlevelled) == [true, false])
    // Once it is off, its silence counts.
    let later = try #require(decide(&locator, from: 10.1, for: 7, left: nil, right: -50).last)
    #expect(later.isLocated && later.facing?.id == Self.steps[1].id)
  }

  @Test("some frames without an RSSI among others change nothing")
  func someUnlevelled() throws {
    var locator = Locator(steps: Self.steps)
    for tenth in 0..<100 {
      locator.hear(beacon(1), rssi: tenth % 4 == 0 ? nil : -50, at: Double(tenth) / 10)
      locator.hear(beacon(2), rssi: tenth % 4 == 1 ? nil : -72, at: Double(tenth) / 10)
    }
    #expect(locator.decide(at: 10).missing == nil)
  }

  @Test("frames that are missing, a level that falls and a beacon twice are said")
  func missingOnTheWay() {
    var locator = Locator(steps: Self.steps)
    locator.hear(beacon(1), rssi: -50, at: 0)
    #expect(locator.decide(at: 0.1).missing == .frames)
    _ = decide(&locator, from: 1, for: 10, left: -50, right: -75)
    #expect(decide(&locator, from: 11, for: 3, left: -62, right: -80).last?.missing == .steadiness)
    for tenth in 0..<30 {
      locator.hear(beacon(1, minor: tenth % 10 == 0 ? 9 : 7), rssi: -50, at: 14 + Double(tenth) / 10)
    }
    #expect(locator.decide(at: 17).missing == .contested)
  }

  @Test("the distance follows a rider who walks up by a second, and no zone contradicts it")
  func walking() throws {
    var locator = Locator(steps: Self.steps)
    // 12 m to 0.6 m at 1.2 m/s, by the law of free space.
    func metres(at time: Double) -> Double { max(12 - 1.2 * time, 0.6) }
    for tenth in 0..<150 {
      let time = Double(tenth) / 10
      if tenth % 5 == 0, tenth > 20 {
        let reading = locator.decide(at: time).readings[0]
        let distance = try #require(reading.distance).metres
        #expect(distance <= metres(at: time - 1.1) * 1.06 && distance >= metres(at: time) * 0.94, "\(time)")
        switch reading.zone {
        case .far: #expect(metres(at: time) > 1.5)
        case .immediate: #expect(metres(at: time) < 0.7)
        case .near, .unknown: break
        }
      }
      let rssi = Int8((-59 + RangingModel.level(at: metres(at: time))).rounded())
      locator.hear(beacon(1), rssi: rssi, at: time)
    }
  }

  @Test("few frames locate somebody only where they are so strong that their error cannot matter")
  func fewFrames() {
    func isLocated(rssi: Int8, frames: Int) -> Bool {
      var locator = Locator(steps: Self.steps)
      for frame in 0..<frames {
        let time = Double(frame) * 1.9 / Double(frames)
        locator.hear(beacon(1), rssi: rssi, at: time)
        locator.hear(beacon(2), rssi: -80, at: time)
      }
      return locator.decide(at: 1.9).isLocated
    }
    // -6 dB: the mean of three may be wrong by 3.3 dB, of twelve by 1.7.
    #expect(!isLocated(rssi: -65, frames: 3) && isLocated(rssi: -65, frames: 12))
    #expect(isLocated(rssi: -62, frames: 3))
  }

  @Test("who was located and walks away is not located from two and a half seconds later on", arguments: [12, 18, 24])
  func leaving(fall: Int8) {
    var locator = Locator(steps: Self.steps)
    let standing = decide(&locator, from: 0, for: 8, left: -62, right: -85)
    #expect(standing.last!.isLocated)
    let after = decide(&locator, from: 8, for: 6, left: -62 - fall, right: -88)
    #expect(after[5...].allSatisfy { !$0.isLocated })
  }

  @Test("who turns round close to the step stays located, although a body takes as much as a few steps away")
  func turning() {
    var locator = Locator(steps: Self.steps)
    _ = decide(&locator, from: 0, for: 8, left: -48, right: -80)
    let after = decide(&locator, from: 8, for: 8, left: -56, right: -88)
    #expect(after.allSatisfy { $0.isLocated })
  }

  @Test("three frames of the step, and two of the other, are the fewest that locate somebody", arguments: 1...4, 0...3)
  func fewest(own: Int, other: Int) {
    var locator = Locator(steps: Self.steps)
    for frame in 0..<own { locator.hear(beacon(1), rssi: -50, at: Double(frame) / 10) }
    for frame in 0..<other { locator.hear(beacon(2), rssi: -80, at: Double(frame) / 10) }
    #expect(locator.decide(at: 0.5).isLocated == (own >= 3 && other >= 2))
  }

  @Test("when a beacon falls silent its zone is soon unknown, and nobody is located")
  func silence() {
    var locator = Locator(steps: Self.steps)
    _ = decide(&locator, from: 0, for: 10, left: -50, right: -72)
    let after = decide(&locator, from: 10, for: 10, left: nil, right: -72)
    #expect(after[7...].allSatisfy { !$0.isLocated })
    #expect(after.last!.readings[0].zone == .unknown)
    #expect(after.last!.facing == nil)
    #expect(after.allSatisfy { $0.facing?.side != .right })
  }

  @Test("one frame as strong as may be decides nothing")
  func burst() {
    var locator = Locator(steps: Self.steps)
    _ = decide(&locator, from: 0, for: 10, left: -80, right: -82)
    locator.hear(beacon(2), rssi: -10, at: 10)
    let location = locator.decide(at: 10)
    #expect(location.facing == nil && !location.isLocated)
    #expect(location.readings[1].zone != .immediate)
  }

  @Test("a longer one locates nobody either", arguments: [-72, -82] as [Int8], 1...20)
  func longerBurst(base: Int8, frames: Int) {
    var locator = Locator(steps: Self.steps)
    _ = decide(&locator, from: 0, for: 10, left: base, right: base - 12)
    for frame in 0..<frames { locator.hear(beacon(1), rssi: -30, at: 10 + Double(frame) / 100) }
    #expect(!locator.decide(at: 10.2).isLocated)
  }

  @Test("the only step of a vehicle takes as much as one whose neighbors are silent")
  func onlyStep() {
    let faint = decide(steps: [Self.steps[0]], rssi: -64, frames: 60)
    #expect(!faint.isLocated)
    #expect(!decide(steps: [Self.steps[0]], rssi: -50, frames: 7).isLocated)
    #expect(decide(steps: [Self.steps[0]], rssi: -50, frames: 20).isLocated)
  }

  private func decide(steps: [Step], rssi: Int8, frames: Int) -> Location {
    var locator = Locator(steps: steps)
    for tenth in 0..<frames { locator.hear(beacon(1), rssi: rssi, at: Double(tenth) / 10) }
    return locator.decide(at: Double(frames) / 10)
  }

  @Test("two beacons that send as one step's say nothing of it, and a minor that rotates does")
  func contested() {
    func decide(_ minor: (Int) -> UInt16) -> Location {
      var locator = Locator(steps: Self.steps)
      for tenth in 0..<160 {
        locator.hear(beacon(1, minor: minor(tenth)), rssi: -50, at: Double(tenth) / 10)
        locator.hear(beacon(2), rssi: -75, at: Double(tenth) / 10)
      }
      return locator.decide(at: 16)
    }
    let contested = decide { $0 % 20 == 0 ? 9 : 1 }
    #expect(contested.facing == nil && !contested.isLocated)
    #expect(
      contested.readings.map(\.zone) == [.unknown, .far] && contested.readings.map(\.isContested) == [true, false])
    let rotating = decide { UInt16($0 / 20) }
    #expect(rotating.isLocated && rotating.facing?.side == .left)
    // By chance it comes back after a period.
    #expect(decide { UInt16($0 / 80 % 2) }.isLocated)
  }

  typealias Address = @Sendable (Int) -> UInt64
  /// A sender of the left step's frames: which address sends each frame, at which level, dBm.
  typealias Sender = (address: Address, rssi: (Int) -> Int8)

  /// Each sender sends ten frames a second for sixteen seconds, with the same minor. The right step's beacon arrives
  /// with -75 dBm.
  func decide(_ senders: [Sender]) -> [Location] {
    var locator = Locator(steps: Self.steps)
    var decisions: [Location] = []
    for tenth in 0..<160 {
      let time = Double(tenth) / 10
      for (number, sender) in senders.enumerated() {
        locator.hear(
          beacon(1), from: DeviceAddress(sender.address(tenth)), rssi: sender.rssi(tenth),
          at: time + Double(number) / 100)
      }
      locator.hear(beacon(2), from: DeviceAddress(2), rssi: -75, at: time)
      if tenth % 5 == 4 { decisions.append(locator.decide(at: time + 0.05)) }
    }
    return decisions
  }

  @Test(
    "two beacons with one minor and levels far apart say nothing of their step",
    arguments: [
      { _ in 9 },
      // A spare one that changes its address, too: each packet, and each second.
      { 100 + UInt64($0) }, { 100 + UInt64($0 / 10) },
    ] as [Address], [-80, -65, -92] as [Int8])
  func twoBeacons(spare: @escaping Address, rssi: Int8) {
    let decisions = decide([({ _ in 1 }, { _ in rssi }), (spare, { _ in -48 })])
    #expect(decisions.allSatisfy { $0.facing == nil && $0.missing == .contested })
    #expect(decisions.last?.readings.map(\.isContested) == [true, false])
    #expect(decisions.last?.readings[0].zone == .unknown)
  }

  @Test("of a beacon that is hardly heard, one frame in the window is enough to tell that there are two")
  func hardlyHeard() {
    let decisions = decide([({ $0 % 50 == 0 ? 1 : 9 }, { $0 % 50 == 0 ? -88 : -48 })])
    #expect(decisions.filter { $0.time > 5.2 }.allSatisfy { $0.missing == .contested })
  }

  @Test("two beacons side by side are one, and so is a beacon that was moved, or replaced by another")
  func oneFromTwo() {
    let beside = decide([({ _ in 1 }, { _ in -50 }), ({ _ in 9 }, { _ in -56 })])
    #expect(beside.allSatisfy { $0.isLocated && $0.facing?.side == .left })
    let replaced = decide([({ $0 < 80 ? 1 : 9 }, { $0 < 80 ? -72 : -50 })])
    #expect(replaced.allSatisfy { $0.missing != .contested } && replaced.last!.isLocated)
  }

  @Test(
    "a beacon that changes its address locates: each packet, each second, back and forth, and among a few",
    arguments: [
      { UInt64($0) }, { UInt64($0 / 10) }, { UInt64($0 % 2) }, { UInt64($0 / 10 % 2) }, { UInt64($0 * $0 % 7) },
    ] as [Address])
  func rotatingAddress(address: @escaping Address) {
    // A still rider, whose packets differ by 9 dB.
    let still = decide([(address, { -50 - Int8($0 * 7 % 4 * 3) })])
    #expect(still.dropFirst(2).allSatisfy { $0.isLocated && $0.facing?.side == .left })
    // Who walks from 12 m to 0.6 m at 1.2 m/s.
    let walking = decide([
      (address, { Int8((-59 + RangingModel.level(at: max(12 - 0.12 * Double($0), 0.6))).rounded()) })
    ])
    #expect(walking.allSatisfy { $0.missing != .contested } && walking.last!.isLocated)
  }

  @Test("a measured power that no beacon has says nothing", arguments: [-128, -101, -19, 0, 127] as [Int8])
  func impossiblePower(power: Int8) {
    var locator = Locator(steps: Self.steps)
    for tenth in 0..<50 { locator.hear(beacon(1, power: power), rssi: -80, at: Double(tenth) / 10) }
    #expect(locator.decide(at: 5).readings[0].age == nil)
    // The vehicle file knows better.
    let measured = Step(id: StepID("left")!, side: .left, major: 1, measuredPower: -59)
    locator = Locator(steps: [measured, Self.steps[1]])
    for tenth in 0..<50 { locator.hear(beacon(1, power: power), rssi: -50, at: Double(tenth) / 10) }
    #expect(locator.decide(at: 5).readings[0].zone == .immediate)
  }

  @Test("readings that are not available, impossible times and other majors say nothing")
  func nonsense() {
    var locator = Locator(steps: Self.steps)
    for tenth in 0..<50 {
      locator.hear(beacon(1), rssi: nil, at: Double(tenth) / 10)
      locator.hear(beacon(1), rssi: 0, at: Double(tenth) / 10)
      locator.hear(beacon(9), rssi: -40, at: Double(tenth) / 10)
      locator.hear(beacon(2), rssi: -40, at: .nan)
      locator.hear(beacon(2), rssi: -40, at: .infinity)
    }
    let location = locator.decide(at: 5)
    #expect(location.readings.allSatisfy { $0.packets == 0 && $0.zone == .unknown && $0.age == nil })
  }

  @Test("a clock that was set back begins anew, and one that jumps ahead forgets")
  func clocks() {
    var locator = Locator(steps: Self.steps)
    _ = decide(&locator, from: 1000, for: 10, left: -50, right: -72)
    #expect(locator.decide(at: 1009.9).isLocated)
    #expect(!locator.decide(at: 5000).isLocated)
    let again = decide(&locator, from: 3, for: 3, left: -72, right: -50)
    #expect(again.last!.facing?.side == .right)
  }

  @Test("beacons of different power are compared by their levels")
  func powers() {
    var locator = Locator(steps: Self.steps)
    for tenth in 0..<50 {
      locator.hear(beacon(1, power: -75), rssi: -66, at: Double(tenth) / 10)
      locator.hear(beacon(2, power: -50), rssi: -64, at: Double(tenth) / 10)
      if tenth % 5 == 0 { _ = locator.decide(at: Double(tenth) / 10) }
    }
    #expect(locator.decide(at: 5).facing?.side == .left)
  }

  @Test("frames of mixed powers make no RSSI that a receiver does not know", arguments: [(-100, -20), (-20, -100)])
  func mixedPowers(first: Int8, last: Int8) {
    var locator = Locator(steps: Self.steps)
    for tenth in 0..<20 { locator.hear(beacon(1, power: first), rssi: -60, at: Double(tenth) / 10) }
    locator.hear(beacon(1, power: last), rssi: -60, at: 2)
    #expect(locator.decide(at: 2).readings[0].rssi == (last == -20 ? -1 : -127))
  }

  @Test("a beacon that was never heard counts by the power that was measured on the vehicle")
  func unheardPower() {
    // At 1 m the right one arrives with -85 dBm, if at all: that it is not heard says nothing of it.
    let weak = Step(id: StepID("right")!, side: .right, major: 2, measuredPower: -85)
    var locator = Locator(steps: [Self.steps[0], weak])
    let decisions = decide(&locator, from: 0, for: 10, left: -59, right: nil)
    #expect(decisions.allSatisfy { $0.facing == nil && !$0.isLocated })
  }

  @Test("a vehicle with three steps: one is ahead of both others, or none is")
  func threeSteps() {
    let steps = Self.steps + [Step(id: StepID("rear")!, side: .left, major: 3)]
    var locator = Locator(steps: steps)
    for tenth in 0..<60 {
      for (major, rssi) in [(1, -50), (2, -75), (3, -55)] as [(UInt16, Int8)] {
        locator.hear(beacon(major), rssi: rssi, at: Double(tenth) / 10)
      }
      if tenth % 5 == 0 { #expect(locator.decide(at: Double(tenth) / 10).facing == nil) }
    }
  }
}

extension JSON {
  /// A number of either kind.
  var double: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .number(let value): value
    default: nil
    }
  }
}
