import Domain
import Testing

@testable import Evaluation
@testable import Ranging

@Suite("Calibration") struct CalibrationTests {
  let left = Step(id: StepID("left")!, side: .left, major: 1)
  let right = Step(id: StepID("right")!, side: .right, major: 2)
  var steps: [Step] { [left, right] }

  func beacon(_ major: UInt16) -> IBeacon {
    IBeacon(uuid: Domain.UUID(high: 1, low: 2), major: major, minor: 7, measuredPower: -59)
  }

  /// What free space makes of a beacon, with fading of a fixed pattern, which is as often above as below.
  func recording(
    _ position: CalibrationPosition, power: Double, of step: Step? = nil, packets: Int = 100, fading: [Double] = [0],
    other: Int8? = -85, drift: Double = 0
  ) -> PositionRecording {
    var recording = PositionRecording(of: step ?? left, at: position, among: steps)
    for index in 0..<packets {
      let level = power + position.level + fading[index % fading.count] + drift * Double(index) / Double(packets)
      recording.hear(beacon(1), rssi: Int8(level.rounded()), at: Double(index) / 10)
      recording.hear(beacon(2), rssi: other, at: Double(index) / 10)
    }
    return recording
  }

  func recordings(power: Double, pocket loss: Double = 0, fading: [Double] = [0]) -> [PositionRecording] {
    CalibrationPosition.all.map {
      recording($0, power: $0.carry == .hand ? power : power - loss, fading: fading)
    }
  }

  // MARK: - The fit

  @Test("finds the power that the recordings were made with", arguments: [-80, -66, -59, -45])
  func exact(power: Int8) throws {
    let calibration = try StepCalibration(of: left, from: recordings(power: Double(power)))
    #expect(calibration.measuredPower == power)
    #expect(calibration.previousPower == -59)
    // Whole decibels are what a radio tells.
    #expect(calibration.residuals.allSatisfy { abs($0) <= 0.6 })
  }

  @Test("outliers, among them packets from the wrong place, have no say")
  func robust() throws {
    // Fading takes away: one packet in five by 20 dB, one in five by 8; and one in ten is too strong.
    let fading: [Double] = [0, -20, 1, -1, 0, -20, 0, 1, -1, 15]
    let calibration = try StepCalibration(of: left, from: recordings(power: -70, fading: fading))
    #expect(abs(Int(calibration.measuredPower) + 70) <= 1)
  }

  @Test("hand and pocket count the same")
  func weights() throws {
    let calibration = try StepCalibration(of: left, from: recordings(power: -60, pocket: 8))
    #expect(calibration.measuredPower == -64)
    for (recording, residual) in zip(calibration.recordings, calibration.residuals) {
      #expect(abs(residual - (recording.position.carry == .hand ? 4 : -4)) < 0.6)
    }
    // Also when there are fewer of one kind.
    let four = recordings(power: -60, pocket: 8).filter { $0.position.carry == .hand || $0.position.distance == .one }
    #expect(try StepCalibration(of: left, from: four).measuredPower == -64)
  }

  @Test("a beacon that gives a wrong power is put right, as positions show that were not used for it")
  func improvement() throws {
    let calibration = try StepCalibration(of: left, from: recordings(power: -72))
    #expect(calibration.before.share == 0)
    #expect(try #require(calibration.after.share) > 0.9)
    #expect(!calibration.isWorse)
  }

  @Test("no position is judged by a power that it has a share in")
  func others() throws {
    // With all three the power is -60 dBm, by which the first is just immediate; by the others alone it is not.
    let recordings = [
      recording(.init(.short, .hand), power: -62), recording(.init(.one, .hand), power: -59),
      recording(.init(.long, .hand), power: -59),
    ]
    let calibration = try StepCalibration(of: left, from: recordings)
    #expect(calibration.measuredPower == -60)
    #expect(recordings[0].zones(measuredPower: -60)?.share == 1)
    #expect(try #require(calibration.after.share) < 0.6)
  }

  @Test("positions that contradict each other show that the result is worth nothing")
  func contradiction() throws {
    // The power so far is right at 1 m, and the pocket says another by 30 dB.
    let calibration = try StepCalibration(of: left, from: recordings(power: -59, pocket: 30))
    #expect(calibration.isWorse)
    #expect(calibration.residuals.contains { abs($0) > 10 })
  }

  @Test("what the step had before is what the new power is compared with")
  func previous() throws {
    var step = left
    step.measuredPower = -66
    let recordings = CalibrationPosition.all.map { recording($0, power: -66, of: step) }
    let calibration = try StepCalibration(of: step, from: recordings)
    #expect(calibration.previousPower == -66)
    #expect(calibration.measuredPower == -66)
    #expect(try #require(calibration.before.share) > 0.9)
  }

  @Test("too little to go by is refused")
  func tooLittle() {
    let all = recordings(power: -60)
    #expect(throws: StepCalibration.Problem.fewPositions(0)) { try StepCalibration(of: left, from: []) }
    #expect(throws: StepCalibration.Problem.fewPositions(2)) {
      try StepCalibration(of: left, from: Array(all.prefix(2)))
    }
    let same = [all[2], all[3], all[2]]
    #expect(throws: StepCalibration.Problem.oneDistance) { try StepCalibration(of: left, from: same) }
  }

  @Test("a level that does not fall with distance is refused: the distances were not kept")
  func noFall() {
    let recordings = CalibrationPosition.all.map { recording($0, power: -60 - $0.level) }
    #expect(throws: StepCalibration.Problem.noFall(.hand, by: 0)) { try StepCalibration(of: left, from: recordings) }
  }

  @Test("what no beacon has is refused")
  func implausible() {
    #expect(throws: StepCalibration.Problem.implausible(-10)) {
      try StepCalibration(
        of: left,
        from: [.init(.one, .hand), .init(.one, .pocket), .init(.long, .hand)].map {
          recording($0, power: -10)
        })
    }
  }

  // MARK: - Quality

  let position = CalibrationPosition(.one, .hand)

  @Test("a good recording has no flaw, with the fading that is usual")
  func good() {
    let recording = recording(position, power: -59, fading: [0, 4, -4, 2, -6, 1, -2, 3, 0, -1])
    #expect(recording.flaws == [])
    #expect(recording.packets == 100)
  }

  @Test("too few packets, none, and ones without RSSI")
  func few() {
    #expect(recording(position, power: -59, packets: 29).flaws == [.fewPackets(29)])
    #expect(recording(position, power: -59, packets: 30).flaws == [])
    let silence = PositionRecording(of: left, at: position, among: steps)
    #expect(silence.flaws == [.fewPackets(0), .silent(right.id)])
    #expect(silence.rssi == nil && silence.spread == nil && silence.drift == nil)
    var unknown = silence
    for index in 0..<50 { unknown.hear(beacon(1), rssi: nil, at: Double(index)) }
    #expect(unknown.packets == 0)
  }

  @Test("the other step's side is noticed, and its silence")
  func other() {
    #expect(recording(position, power: -59, other: -50).flaws == [.otherStep(right.id, by: 9)])
    #expect(recording(position, power: -59, other: -53).flaws == [])
    #expect(recording(position, power: -59, other: nil).flaws == [.silent(right.id)])
    #expect(!PositionFlaw.silent(right.id).isFatal)
  }

  @Test("someone who walks is noticed")
  func moving() {
    let flaws = recording(position, power: -59, drift: -16).flaws
    guard case .drift(let drift) = flaws.first else { return #expect(Bool(false), "\(flaws)") }
    #expect(abs(drift + 8) < 1)
    #expect(recording(position, power: -59, drift: -10).flaws == [])
  }

  @Test("a level that scatters is noticed, and can be used")
  func scattered() {
    let recording = recording(position, power: -59, fading: [10, -10])
    #expect(recording.flaws == [.spread(20)])
    #expect(!PositionFlaw.spread(20).isFatal)
  }

  // MARK: - Zones

  @Test("a clock that jumps, by years or back, costs no more than the moment", arguments: [1.8e9, -1.8e9])
  func clock(jump: Double) throws {
    var recording = PositionRecording(of: left, at: position, among: steps)
    for index in 0..<200 {
      recording.hear(beacon(1), rssi: -59, at: Double(index) / 10 + (index < 100 ? 0 : jump))
    }
    let count = try #require(recording.zones())
    #expect((36...40).contains(count.all))
    #expect(count.right >= count.all - 4)
  }

  // MARK: - The measured power in use

  @Test("a step's own measured power holds in place of the frame's")
  func override() {
    func zone(_ power: Int8?) -> Zone {
      var step = left
      step.measuredPower = power
      var locator = Locator(steps: [step])
      for tenth in 0..<50 { locator.hear(beacon(1), rssi: -62, at: Double(tenth) / 10) }
      let reading = locator.decide(at: 5).readings[0]
      #expect(reading.rssi == -62)
      #expect(reading.measuredPower == power ?? -59)
      return reading.zone
    }
    #expect(zone(nil) == .near)
    #expect(zone(-59) == .near)
    #expect(zone(-72) == .immediate)
    #expect(zone(-45) == .far)
  }
}
