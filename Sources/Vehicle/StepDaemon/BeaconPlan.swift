import Bluetooth
import Domain
import Ranging
import StepController
import StepProtocol

/// What one adapter sends: the beacons of one or more steps.
struct BeaconPlan: Sendable {
  private struct Beacon: Sendable {
    let step: Step
    let minor: RotatingMinor
  }

  let radio: RadioSpec
  private let uuid: UUID
  private var beacons: [Beacon] = []

  var steps: [StepID] { beacons.map(\.step.id) }
  var names: String { steps.map(\.description).joined(separator: ", ") }

  /// One plan for each adapter, in the order of the vehicle's steps.
  ///
  /// - Parameters:
  ///   - minors: for every step that has an adapter.
  ///   - radios: the adapters, which can advertise. A step without one has a beacon from another maker, or no beacon.
  static func all(
    of vehicle: Vehicle, minors: [StepID: RotatingMinor], radios: [StepID: RadioSpec]
  ) -> [BeaconPlan] {
    var plans: [BeaconPlan] = []
    for step in vehicle.steps {
      guard let radio = radios[step.id], let minor = minors[step.id] else { continue }
      let index = plans.firstIndex { $0.radio == radio }
      if index == nil { plans.append(BeaconPlan(radio: radio, uuid: vehicle.uuid)) }
      plans[index ?? plans.count - 1].beacons.append(Beacon(step: step, minor: minor))
    }
    return plans
  }

  private init(radio: RadioSpec, uuid: UUID) {
    self.radio = radio
    self.uuid = uuid
  }

  /// The frames to send at a time, seconds of Unix time.
  func frames(at time: Int64) -> [IBeacon] {
    beacons.map { beacon in
      IBeacon(
        uuid: uuid, major: beacon.step.major, minor: beacon.minor.minor(at: time),
        measuredPower: beacon.step.measuredPower ?? IBeacon.usualMeasuredPower)
    }
  }

  /// When the frames change next, seconds of Unix time.
  func change(after time: Int64) -> Int64 {
    // A plan always has at least one beacon.
    beacons.map { $0.minor.change(after: time) }.min()!
  }
}
