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
    let broker = try present(file.broker, "[broker]")
    let controller = try present(file.controller, "[controller]")
    let topic = try present(file.topic, "topic")
    let key = try place.keys().present
    let time = try place.issueTime(now)
    let authorityFile = broker.tls?.authority ?? path(VehiclePaths.authorityCertificate)
    let pem = try Files.readRegular(authorityFile)
    let authority = try about(authorityFile) { try Certificate(pem: pem).der() }
    let code = VehicleCode(
      vehicle: file.vehicle, topic: topic, host: broker.host, port: broker.port,
      authority: authority, encryptionKey: controller.encryption, signingKey: controller.signing, issued: time.now)
    let text = code.signed(by: key)
    // For example a malformed host. The maker of the code can correct that, a rider cannot.
    do { _ = try VehicleCode.verify(text) } catch {
      throw ConfigurationError(file.path, "makes a code that riders would refuse: \(error)")
    }
    return (text, key.verificationKey.thumbprint)
  }
}
