package import Bluetooth
package import Domain
package import StepProtocol
package import StepdConfiguration

/// The properties of a new vehicle.
package struct VehiclePlan: Sendable {
  package var vehicle: Vehicle
  package var topic: TopicPrefix
  package var servo: ServoKind
  /// The radios that send steps' iBeacons with rotating minors. The vehicle sends no beacons for the other steps.
  package var beaconRadios: [StepID: RadioSpec]
  /// What delays a step while something on the road approaches it.
  package var trafficGuard: ControllerFile.Guard?

  package init(
    vehicle: Vehicle, topic: TopicPrefix, servo: ServoKind,
    beaconRadios: [StepID: RadioSpec] = [:], trafficGuard: ControllerFile.Guard? = nil
  ) {
    self.vehicle = vehicle
    self.topic = topic
    self.servo = servo
    self.beaconRadios = beaconRadios
    self.trafficGuard = trafficGuard
  }
}

/// The kind of hardware that moves a vehicle's steps.
package enum ServoKind: String, Sendable, CaseIterable {
  /// No hardware: motions are written to a log.
  case simulated
  /// Servos on the kernel's PWM channels, in the order of the steps.
  case pwm
  /// Servos on a PCA9685 board, in the order of the steps.
  case pca9685
}

/// The result of a plan.
package struct VehicleSummary: Sendable, Equatable {
  /// The files, as paths from the vehicle's folder.
  package let files: [String]
  /// Under the operator's name for it.
  package let vehicle: Vehicle
  package let broker: BrokerAddress
  /// The key that signs tokens.
  package let tokenKey: Thumbprint
  /// The key to which commands are encrypted.
  package let encryptionKey: Thumbprint
  /// The key that signs statements.
  package let signingKey: Thumbprint
  /// When the certificates of broker and controller end, Unix time.
  package let certificatesEnd: Int64
}
