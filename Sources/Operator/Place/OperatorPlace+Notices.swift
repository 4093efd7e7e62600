import Access
import Certificates
package import Domain
import Encoding
import FileFormats
import Glibc
package import MQTT
import StepProtocol
import SystemIO

extension OperatorPlace {
  /// A vehicle's notice, to be published.
  package struct AddressedNotice: Sendable {
    package let vehicle: Vehicle
    package let topic: TopicPrefix
    package let broker: Broker
    package let sequence: Int64
    package let text: String
    let revocations: Int

    /// Throws if vehicles would reject the notice for its size.
    func checkSize() throws(LedgerError) {
      guard text.utf8.count <= Notice.maximumSize else { throw .noticeTooLarge(revocations) }
    }
  }

  /// New notices for all vehicles.
  package func notices(now: Int64) throws -> [AddressedNotice] {
    let keys = try keys()
    return try notices(by: keys.signingNotices, listing: keys.counting, now: now)
  }

  /// A new notice for a vehicle.
  func notice(for folder: VehicleFolder, now: Int64) throws -> AddressedNotice {
    let keys = try keys()
    return try notice(for: folder, by: keys.signingNotices, listing: keys.counting, now: now)
  }

  func notices(by key: SigningKey, listing keys: [VerificationKey], now: Int64) throws -> [AddressedNotice] {
    try vehicles().map { try notice(for: $0, by: key, listing: keys, now: now) }
  }

  private func notice(
    for folder: VehicleFolder, by key: SigningKey, listing keys: [VerificationKey], now: Int64
  ) throws -> AddressedNotice {
    let file = try folder.readVehicleFile()
    let topic = try file.present(file.topic, "topic")
    let broker = try file.present(file.broker, "[broker]")
    let time = try issueTime(now)
    let (eventKey, acknowledged) = (try eventKey().encryptionKey, try archive(of: file.vehicle.uuid).last()?.place)
    let notice = try change {
      $0.notice(for: file.vehicle.uuid, keys: keys, eventKey: eventKey, acknowledged: acknowledged, now: time.now)
    }
    return AddressedNotice(
      vehicle: file.vehicle, topic: topic, broker: asOperator(broker),
      sequence: notice.sequence, text: notice.signed(by: key), revocations: notice.revoked.count)
  }

  /// A vehicle's broker, with the operator's identity.
  func asOperator(_ broker: Broker) -> Broker {
    let identity = Broker.Identity(
      certificate: path(VehiclePaths.operatorCertificate), key: path(VehiclePaths.operatorKey))
    return Broker(
      host: broker.host, port: broker.port,
      tls: .init(authority: path(VehiclePaths.authorityCertificate), identity: identity))
  }
}
