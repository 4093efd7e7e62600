package import StepDomain

/// What a vehicle is to be.
package struct VehiclePlan: Sendable {
  package var vehicle: Vehicle
  package var topic: TopicPrefix
  package var host: BrokerHost
  package var port: UInt16
  package var servo: ServoKind
  /// The radio that is to send every step's iBeacon with rotating minors; nil when the vehicle sends none itself.
  package var beaconAdapter: String?

  package init(
    vehicle: Vehicle, topic: TopicPrefix, host: BrokerHost, port: UInt16, servo: ServoKind,
    beaconAdapter: String? = nil
  ) {
    self.vehicle = vehicle
    self.topic = topic
    self.host = host
    self.port = port
    self.servo = servo
    self.beaconAdapter = beaconAdapter
  }
}
