package import Domain
package import MQTT
package import StepProtocol

/// All that a rider's program needs to command a vehicle.
package struct RiderAccess: Sendable {
  package let vehicle: Vehicle
  /// What the vehicle's topics begin with.
  package let topic: TopicPrefix
  package let broker: Broker
  /// What commands are encrypted to.
  package let encryptionKey: EncryptionKey
  /// What the controller's statements are signed with.
  package let statementKey: VerificationKey
  /// What the rider's commands are signed with.
  package let device: SigningKey
  /// What the token says, unverified: for the rider to read, who cannot and need not check it.
  package let token: Token
  /// The token's compact form, as commands carry it.
  package let tokenText: String

  /// Why a token cannot be used with a device key.
  package enum Problem: Error, Equatable {
    case notToken(ProtocolError)
    /// The token is bound to another device key: to such a rider no controller says a word.
    case otherDevice
  }

  package init(
    vehicle: Vehicle, topic: TopicPrefix, broker: Broker, encryptionKey: EncryptionKey, statementKey: VerificationKey,
    device: SigningKey, token text: String
  ) throws(Problem) {
    do throws(ProtocolError) { token = try Token(unverified: text) } catch { throw .notToken(error) }
    guard token.device == device.verificationKey else { throw .otherDevice }
    self.vehicle = vehicle
    self.topic = topic
    self.broker = broker
    self.encryptionKey = encryptionKey
    self.statementKey = statementKey
    self.device = device
    tokenText = text
  }
}
