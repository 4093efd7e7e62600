public import Domain
public import MQTT
public import StepProtocol

/// Everything that a rider's program needs to command a vehicle.
public struct RiderAccess: Sendable {
  public let vehicle: Vehicle
  /// The beginning of the vehicle's topics.
  public let topic: TopicPrefix
  public let broker: Broker
  /// The key to which commands are encrypted.
  public let encryptionKey: EncryptionKey
  /// The key that verifies the controller's statements.
  public let statementKey: VerificationKey
  /// The key that signs the rider's commands.
  public let device: SigningKey
  /// The token's content, unverified: only for information, because the rider cannot and need not verify it.
  public let token: Token
  /// The token's compact form, as commands carry it.
  public let tokenText: String

  /// Why a token cannot be used with a device key.
  public enum Problem: Error, Equatable {
    case notToken(ProtocolError)
    /// The token is bound to another device key: a controller gives such a rider no answer.
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

  /// The vehicle's steps that the token is for.
  package var ownSteps: [StepID] { vehicle.steps.map(\.id).filter(token.steps.contains) }
}
