public import Domain
import FileFormats
public import StepProtocol
import SystemIO

/// The public part of a vehicle: what an operator has to know of it.
public struct VehicleRecord: Sendable, Equatable {
  public let vehicle: Vehicle
  public let topic: TopicPrefix
  public let encryptionKey: EncryptionKey
  public let signingKey: VerificationKey
  /// The certificate of its controller, PEM.
  public let certificate: [UInt8]

  public init(
    vehicle: Vehicle, topic: TopicPrefix, encryptionKey: EncryptionKey, signingKey: VerificationKey,
    certificate: [UInt8]
  ) {
    self.vehicle = vehicle
    self.topic = topic
    self.encryptionKey = encryptionKey
    self.signingKey = signingKey
    self.certificate = certificate
  }

  /// Reads a vehicle's folder.
  init(reading folder: VehicleFolder) throws {
    let file = try folder.readVehicleFile()
    let controller = try file.present(file.controller, "[controller]")
    self.init(
      vehicle: file.vehicle, topic: try file.present(file.topic, "topic"), encryptionKey: controller.encryption,
      signingKey: controller.signing,
      certificate: try Files.readRegular(folder.path(VehiclePaths.controllerCertificate)))
  }

  /// vehicle.toml in a vehicle's folder.
  func file(operatorKey: VerificationKey, broker: BrokerAddress) -> VehicleFile {
    VehicleFile(
      path: VehiclePaths.vehicle, vehicle: vehicle, operatorKey: operatorKey, topic: topic,
      broker: broker.inVehicleFile, controller: .init(encryption: encryptionKey, signing: signingKey))
  }
}
