package import FileFormats
package import MQTT
package import StepProtocol

extension VehicleFile {
  /// Everything that a rider needs to command the vehicle. Reads the keys and the token.
  ///
  /// - Parameter unlock: opens the device's key if a passphrase protects it.
  /// - Throws: if a part is missing, or if others can read a private key.
  package func riderAccess(unlock: KeyFile.Unlock? = nil) throws -> RiderAccess {
    let purpose = "commands need it; a rider's vehicle file has it"
    let topic = try present(topic, "topic", purpose)
    let broker = try present(broker, "[broker]", purpose)
    let identity = try present(broker.tls?.identity, "[broker] cert", purpose)
    let controller = try present(controller, "[controller]", purpose)
    let rider = try present(rider, "[rider]", purpose)
    try KeyFile.checkPrivate(identity.key)
    let (device, token) = (try KeyFile.signingKey(rider.deviceKey, unlock: unlock), try KeyFile.token(rider.token))
    do {
      return try RiderAccess(
        vehicle: vehicle, topic: topic, broker: broker, encryptionKey: controller.encryption,
        statementKey: controller.signing, device: device, token: token)
    } catch {
      switch error {
      case .notToken(let reason): throw ConfigurationError(rider.token, "not a token: \(reason)")
      case .otherDevice: throw rider.otherDevice
      }
    }
  }

  /// Begins to prepare the connection to the broker while the rider's keys are read; nil if there is no broker.
  package func tlsPreparation() throws -> TLSPreparation? { try broker.flatMap(TLSPreparation.init) }

  /// The rider's token, checked to be for the rider's device. Needs no passphrase.
  package func riderToken() throws -> Token {
    let rider = try present(rider, "[rider]", "a rider's vehicle file has it")
    guard try KeyFile.isProtected(rider.deviceKey) else { return try riderAccess().token }
    try KeyFile.checkPrivate(rider.deviceKey)
    let text = try KeyFile.token(rider.token)
    let token: Token
    do { token = try Token(unverified: text) } catch { throw ConfigurationError(rider.token, "not a token: \(error)") }
    guard try token.device == KeyFile.verificationKey(rider.deviceKey) else { throw rider.otherDevice }
    return token
  }
}
