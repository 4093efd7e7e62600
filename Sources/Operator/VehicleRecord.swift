import Certificates
public import Domain
import FileFormats
import MQTT
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

  public var topics: VehicleTopics { VehicleTopics(of: vehicle.uuid, topic: topic, steps: vehicle.steps) }

  /// Reads a vehicle's folder.
  init(reading folder: VehicleFolder) throws {
    try self.init(
      folder.readVehicleFile(), certificate: Files.readRegular(folder.path(VehiclePaths.controllerCertificate)))
  }

  /// - Parameters:
  ///   - text: from `text`.
  ///   - certificate: PEM.
  /// - Throws: if the text is damaged.
  public init(parsing text: String, certificate: [UInt8]) throws {
    try self.init(VehicleFile(parsing: Array(text.utf8), path: "the database"), certificate: certificate)
  }

  /// When a controller's certificate ends, Unix time.
  ///
  /// - Parameter certificate: PEM.
  public static func end(ofCertificate certificate: [UInt8]) throws -> Int64 { try Certificate(pem: certificate).end() }

  private init(_ file: VehicleFile, certificate: [UInt8]) throws {
    let controller = try file.present(file.controller, "[controller]")
    self.init(
      vehicle: file.vehicle, topic: try file.present(file.topic, "topic"), encryptionKey: controller.encryption,
      signingKey: controller.signing, certificate: certificate)
  }

  /// Everything but the certificate: vehicle.toml without the operator's key and the broker.
  public var text: String { file().render() }

  /// vehicle.toml, with what is known besides.
  func file(operatorKey: VerificationKey? = nil, broker: Broker? = nil) -> VehicleFile {
    VehicleFile(
      path: VehiclePaths.vehicle, vehicle: vehicle, operatorKey: operatorKey, topic: topic, broker: broker,
      controller: .init(encryption: encryptionKey, signing: signingKey))
  }
}
