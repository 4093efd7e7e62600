import Bluetooth
import Domain
import Ranging
import StepProtocol
import Testing

@testable import StepDaemon

@Suite("What adapters are to send") struct BeaconPlanTests {
  private let left = Step(id: StepID("left")!, side: .left, major: 1, measuredPower: -63)
  private let right = Step(id: StepID("right")!, side: .right, major: 2)
  private let vehicle: Vehicle
  private let minors: [StepID: RotatingMinor]

  init() throws {
    vehicle = try Vehicle(name: "Van", uuid: UUID(high: 1, low: 2), steps: [left, right])
    minors = [
      left.id: RotatingMinor(secret: BeaconSecret(), step: left.id, period: 8),
      right.id: RotatingMinor(secret: BeaconSecret(), step: right.id, period: 8),
    ]
  }

  private func plans(_ radios: [StepID: RadioSpec]) -> [BeaconPlan] {
    BeaconPlan.all(of: vehicle, minors: minors, radios: radios)
  }

  @Test("is each step's beacon at its time, by the adapter that it has")
  func frames() {
    let plans = plans([left.id: .hci(0), right.id: .h4(.unix(path: "/run/beacon"))])
    #expect(plans.map(\.radio) == [.hci(0), .h4(.unix(path: "/run/beacon"))])
    for time in [0, 7, 8, 1_767_225_600] as [Int64] {
      #expect(
        plans.map { $0.frames(at: time) } == [
          [IBeacon(uuid: vehicle.uuid, major: 1, minor: minors[left.id]!.minor(at: time), measuredPower: -63)],
          // Nobody has measured it.
          [IBeacon(uuid: vehicle.uuid, major: 2, minor: minors[right.id]!.minor(at: time), measuredPower: -59)],
        ])
    }
    #expect(plans[0].change(after: 7) == 8)
    #expect(plans[0].change(after: 8) == 16)
  }

  @Test("is one plan for an adapter that several steps share, however that is written")
  func shared() {
    let plans = plans([left.id: .hci(1), right.id: .hci(1)])
    #expect(plans.map(\.steps) == [[left.id, right.id]])
    #expect(plans[0].frames(at: 9).map(\.major) == [1, 2])
  }

  @Test("leaves out steps that a device of its own sends for")
  func others() {
    #expect(plans([right.id: .hci(0)]).map(\.steps) == [[right.id]])
    #expect(plans([:]).isEmpty)
  }
}
