package import Domain

/// What a vehicle is to be.
package struct VehiclePlan: Sendable {
  package var vehicle: Vehicle
  package var topic: TopicPrefix
  package var host: BrokerHost
  package var port: UInt16
  package var servo: ServoKind
  /// The radios that are to send steps' iBeacons with rotating minors. The vehicle sends none of the other steps.
  package var beaconAdapters: [StepID: String]

  package init(
    vehicle: Vehicle, topic: TopicPrefix, host: BrokerHost, port: UInt16, servo: ServoKind,
    beaconAdapters: [StepID: String] = [:]
  ) {
    self.vehicle = vehicle
    self.topic = topic
    self.host = host
    self.port = port
    self.servo = servo
    self.beaconAdapters = beaconAdapters
  }
}
