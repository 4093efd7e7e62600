package import Access
import Certificates
public import Domain
package import Encoding
import FileFormats
import MQTT
public import StepProtocol

/// What a new vehicle shows the operator to whom it is to belong. It contains only public keys.
public struct VehicleEnrolment: Sendable {
  public let vehicle: Vehicle
  public let topic: TopicPrefix
  public let encryptionKey: EncryptionKey
  public let signingKey: VerificationKey
  /// PKCS #10, DER, for the name `controller`.
  public let certificateRequest: [UInt8]

  public init(
    vehicle: Vehicle, topic: TopicPrefix, encryptionKey: EncryptionKey, signingKey: VerificationKey,
    certificateRequest: [UInt8]
  ) {
    self.vehicle = vehicle
    self.topic = topic
    self.encryptionKey = encryptionKey
    self.signingKey = signingKey
    self.certificateRequest = certificateRequest
  }

  /// - Parameters:
  ///   - code: the operator's code: `XXXX-XXXX-XXXX`.
  ///   - isNamed: whether somebody chose the vehicle's name; otherwise the server chooses one.
  package func json(code: String, isNamed: Bool) -> JSON {
    let steps = vehicle.steps.map { step -> JSON in
      [
        "id": .string(step.id.description), "side": .string(step.side.rawValue), "major": .integer(Int64(step.major)),
      ]
    }
    var members: [JSON.Member] = [
      .init("code", .string(code)), .init("id", .string(vehicle.uuid.description)),
      .init("topic", .string(topic.description)), .init("steps", .array(steps)),
      .init(
        "keys",
        [
          "encryption": ["kty": "OKP", "crv": "X25519", "x": .string(Base64URL.encode(encryptionKey.bytes))],
          "signing": signingKey.jwk,
        ]),
      .init("certificate_request", .string(Base64URL.encode(certificateRequest))),
    ]
    if isNamed { members.append(.init("name", .string(vehicle.name))) }
    return .object(members)
  }
}

/// What a vehicle receives in order to belong to its operator.
public struct VehicleAdmission: Sendable {
  /// The operator's name for the vehicle.
  let name: String
  /// The operator's valid keys, the present one first.
  public let keys: [VerificationKey]
  let broker: BrokerAddress
  /// PEM: the authority that broker and vehicle trust.
  public let authority: [UInt8]
  /// PEM: for the request's key.
  public let certificate: [UInt8]

  /// When the certificate ends, Unix time.
  public func end() throws -> Int64 { try about("the certificate") { try Certificate(pem: certificate).end() } }

  public var host: String { broker.host.description }
  public var port: UInt16 { broker.port }

  init(name: String, keys: [VerificationKey], broker: BrokerAddress, authority: [UInt8], certificate: [UInt8]) {
    (self.name, self.keys, self.broker) = (name, keys, broker)
    (self.authority, self.certificate) = (authority, certificate)
  }

  /// - Parameter json: the answer of a fleet's server.
  /// - Throws: `RequestError.unusableAdmission` with the faulty part.
  package init(_ json: JSON) throws(RequestError) {
    func part<Value>(_ name: String, _ value: Value?) throws(RequestError) -> Value {
      guard let value else { throw .unusableAdmission(name) }
      return value
    }
    self.init(
      name: try part("name", json["name"]?.string.flatMap { Vehicle.isName($0) ? $0 : nil }),
      keys: [try part("keys", json["keys"]?.array?.first.flatMap { try? VerificationKey(jwk: $0) })],
      broker: BrokerAddress(
        host: try part("broker", json["broker"]?["host"]?.string.flatMap(BrokerHost.init)),
        port: try part(
          "broker", json["broker"]?["port"]?.integer.flatMap { UInt16(exactly: $0) }.flatMap { $0 > 0 ? $0 : nil })),
      authority: try part("authority", json["authority"]?.string.map { Array($0.utf8) }),
      certificate: try part("certificate", json["certificate"]?.string.map { Array($0.utf8) }))
  }
}

/// Who admits a new vehicle.
package enum VehicleOwner {
  /// The vehicle's own operator, who is made together with the vehicle, with a broker there.
  case itself(BrokerAddress)
  /// The operator of that folder on this computer. A vehicle that keeps its private keys shows its public ones.
  case place(OperatorPlace, VehicleKeys?)
  /// The server of a fleet, which the closure asks. The vehicle is made where it stays, and keeps its private keys.
  case server((VehicleEnrolment) throws -> VehicleAdmission)

  /// The operator whose folder is on this computer.
  package var place: OperatorPlace? { if case .place(let place, _) = self { place } else { nil } }

  var importedKeys: VehicleKeys? { if case .place(_, let keys) = self { keys } else { nil } }
}
