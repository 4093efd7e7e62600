import Configuration
import MQTT
import Rider
import StepProtocol

extension Configuration.RiderAccess {
  func resolved() throws -> Rider.RiderAccess {
    try Rider.RiderAccess(
      vehicle: vehicle, topic: topic,
      broker: MQTT.Broker(
        host: broker.host, port: broker.port,
        tls: .init(authority: broker.ca, identity: .init(certificate: certificate.cert, key: certificate.key))),
      encryptionKey: EncryptionKey(controller.encryption), statementKey: VerificationKey(controller.signing),
      device: KeyFile.signingKey(rider.deviceKey), token: KeyFile.token(rider.token))
  }
}
