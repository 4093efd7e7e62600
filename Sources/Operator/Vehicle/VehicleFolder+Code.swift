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
    let key = try place.keys().present
    return (try readVehicleFile().code(by: key, at: place.issueTime(now)), key.verificationKey.thumbprint)
  }
}

extension VehicleFile {
  /// The code for riders. Reads the certificate of the broker's authority.
  func code(by key: SigningKey, at time: IssueTime) throws -> String {
    let broker = try present(broker, "[broker]")
    let controller = try present(controller, "[controller]")
    let authority = try present(broker.tls, "[broker] ca").authority
    let pem = try Files.readRegular(authority)
    let text = VehicleCode(
      vehicle: vehicle, topic: try present(topic, "topic"), host: broker.host, port: broker.port,
      authority: try about(authority) { try Certificate(pem: pem).der() }, encryptionKey: controller.encryption,
      signingKey: controller.signing, issued: time.now
    ).signed(by: key)
    // For example a malformed host. The maker of the code can correct that, a rider cannot.
    do { _ = try VehicleCode.verify(text) } catch {
      throw ConfigurationError(path, "makes a code that riders would refuse: \(error)")
    }
    return text
  }
}
