package import FileFormats
package import MQTT
package import StepProtocol
import SystemIO

extension VehicleFile {
  /// The private keys that it names: the device's, and that of the rider's certificate. No access file brings them.
  package var privateKeys: [String] { [rider?.deviceKey, broker?.tls?.identity?.key].compactMap { $0 } }

  /// The files that it names and that an access file brings.
  package var accessFiles: [String] {
    [rider?.token, broker?.tls?.authority, broker?.tls?.identity?.certificate].compactMap { $0 }
  }

  /// The files that it names.
  var fileNames: Set<String> { Set(privateKeys + accessFiles) }

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
    for key in [rider.deviceKey, identity.key] where !Files.exists(key) { throw StoreError.lostKey(key) }
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
    guard Files.exists(rider.deviceKey) else { throw StoreError.lostKey(rider.deviceKey) }
    guard try KeyFile.isProtected(rider.deviceKey) else { return try riderAccess().token }
    try KeyFile.checkPrivate(rider.deviceKey)
    let text = try KeyFile.token(rider.token)
    let token: Token
    do { token = try Token(unverified: text) } catch { throw ConfigurationError(rider.token, "not a token: \(error)") }
    guard try token.device == KeyFile.verificationKey(rider.deviceKey) else { throw rider.otherDevice }
    return token
  }
}
