public import Domain
public import MQTT
public import StepProtocol

/// All that a rider's program needs to command a vehicle.
public struct RiderAccess: Sendable {
  public let vehicle: Vehicle
  /// What the vehicle's topics begin with.
  public let topic: TopicPrefix
  public let broker: Broker
  /// What commands are encrypted to.
  public let encryptionKey: EncryptionKey
  /// What the controller's statements are signed with.
  public let statementKey: VerificationKey
  /// What the rider's commands are signed with.
  public let device: SigningKey
  /// What the token says, unverified: for the rider to read, who cannot and need not check it.
  public let token: Token
  /// The token's compact form, as commands carry it.
  public let tokenText: String

  /// Why a token cannot be used with a device key.
  public enum Problem: Error, Equatable {
    case notToken(ProtocolError)
    /// The token is bound to another device key: to such a rider no controller says a word.
    case otherDevice
  }

  public init(
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
