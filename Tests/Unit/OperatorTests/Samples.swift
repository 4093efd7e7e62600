import Domain
import Glibc
import Operator
import SystemIO
import TestSupport

extension Vehicle {
  static func sample(_ name: String = "Rolling Chassis") throws -> Vehicle {
    try Vehicle(
      name: name, uuid: UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!,
      steps: [
        Step(id: .left, side: .left, major: 1), Step(id: .right, side: .right, major: 2),
      ])
  }
}

extension StepID {
  static let left = StepID("left")!
  static let right = StepID("right")!
}

extension RiderName {
  static let ann = RiderName("ann")!
}

extension VehiclePlan {
  static func sample(_ name: String = "Rolling Chassis", servo: ServoKind = .simulated) throws -> VehiclePlan {
    VehiclePlan(vehicle: try .sample(name), topic: TopicPrefix("arena2036/rolling_chassis")!, servo: servo)
  }
}

extension TokenPlan {
  static func sample(_ rider: RiderName = .ann, from: Int64 = now, lifetime: Int64 = 8 * hour) -> TokenPlan {
    TokenPlan(rider: rider, notBefore: from, lifetime: lifetime)
  }
}

/// The hour at which the tests run, so that certificates are valid for other programs.
let now = WallClock.seconds
let hour: Int64 = 3600
let day = 24 * hour

extension BrokerAddress {
  static let sample = BrokerAddress(host: .localhost, port: 8883)

  static func local(_ port: UInt16) -> BrokerAddress { BrokerAddress(host: .localhost, port: port) }
}

extension VehicleFolder {
  /// Makes a vehicle that is its own operator.
  @discardableResult
  func provisionVehicle(
    _ plan: VehiclePlan, at broker: BrokerAddress = .sample, now: Int64 = now, force: Bool
  ) throws -> VehicleSummary {
    try provisionVehicle(plan, of: .itself(broker), now: now, force: force)
  }
}

extension TemporaryFolder {
  /// A vehicle in the folder `vehicle`, which is its own operator.
  func vehicle(
    _ plan: VehiclePlan? = nil, at broker: BrokerAddress = .sample, now: Int64 = now
  ) throws -> VehicleFolder {
    let folder = VehicleFolder("\(path)/vehicle")
    try folder.provisionVehicle(try plan ?? .sample(), at: broker, now: now, force: false)
    return folder
  }
}
