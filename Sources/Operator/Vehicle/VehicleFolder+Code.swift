import Configuration
package import StepProtocol
import SystemIO

extension VehicleFolder {
  /// What a rider scans once to know the vehicle, signed by the operator.
  ///
  /// - Parameter now: Unix time.
  /// - Returns: the text, and the key that people compare when they scan it.
  package func vehicleCode(now: Int64) throws(ProvisioningError) -> (text: String, operatorKey: Thumbprint) {
    try checkFinished()
    let file = try readVehicleFile()
    let broker = try present(file.broker, "[broker]")
    let controller = try present(file.controller, "[controller]")
    let topic = try present(file.topic, "topic")
    let key = try rethrowing { () throws(ConfigurationError) in
      try KeyFile.signingKey(path(VehicleLayout.tokenKey))
    }
    let authority = try certificate(at: broker.ca)
    let encryptionKey: EncryptionKey
    let signingKey: VerificationKey
    do throws(KeyError) {
      encryptionKey = try EncryptionKey(controller.encryption)
      signingKey = try VerificationKey(controller.signing)
    } catch {
      throw .configuration(ConfigurationError(file.path, "[controller]: \(error)"))
    }
    let code = VehicleCode(
      vehicle: file.vehicle, topic: topic, host: broker.host, port: broker.port,
      authority: authority, encryptionKey: encryptionKey, signingKey: signingKey, issued: now)
    let text = code.signed(by: key)
    // A host that is none, for one: who makes the code can mend that, and no rider could.
    do throws(ProtocolError) { _ = try VehicleCode.verify(text) } catch {
      throw .configuration(ConfigurationError(file.path, "makes a code that riders would refuse: \(error)"))
    }
    return (text, key.verificationKey.thumbprint)
  }

  private func certificate(at path: String) throws(ProvisioningError) -> [UInt8] {
    let pem = try rethrowing { () throws(SystemError) in try Files.read(path) }
    return try rethrowing(about: path) { () throws(OpenSSLError) in try Certificate(pem: pem).der() }
  }
}
