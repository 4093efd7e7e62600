import Access
import Certificates
import FileFormats
import MQTT
package import StepProtocol
import SystemIO

extension VehicleFolder {
  /// The code that a rider scans once to add the vehicle, signed by the operator.
  ///
  /// - Parameter now: Unix time.
  /// - Returns: the text, and the key that the rider compares.
  package func vehicleCode(now: Int64) throws -> (text: String, operatorKey: Thumbprint) {
    try checkFinished()
    let file = try readVehicleFile()
    let broker = try file.present(file.broker, "[broker]")
    let authorityFile = broker.tls?.authority ?? path(VehiclePaths.authorityCertificate)
    let pem = try Files.readRegular(authorityFile)
    let authority = try about(authorityFile) { try Certificate(pem: pem).der() }
    let key = try place.keys().present
    return (
      try file.code(broker, authority: authority, by: key, at: place.issueTime(now)), key.verificationKey.thumbprint
    )
  }
}

extension VehicleFile {
  /// - Parameter authority: of the broker's certificate, DER.
  func code(_ broker: Broker, authority: [UInt8], by key: SigningKey, at time: IssueTime) throws -> String {
    let controller = try present(controller, "[controller]")
    let text = VehicleCode(
      vehicle: vehicle, topic: try present(topic, "topic"), host: broker.host, port: broker.port,
      authority: authority, encryptionKey: controller.encryption, signingKey: controller.signing, issued: time.now
    ).signed(by: key)
    // For example a malformed host. The maker of the code can correct that, a rider cannot.
    do { _ = try VehicleCode.verify(text) } catch {
      throw ConfigurationError(path, "makes a code that riders would refuse: \(error)")
    }
    return text
  }
}
