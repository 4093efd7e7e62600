package import Access
import Domain
package import Encoding
import StepProtocol

/// What a new vehicle sends to the server of the fleet that it joins. It contains only public keys.
package struct VehicleEnrolment: Sendable {
  let vehicle: Vehicle
  let topic: TopicPrefix
  let encryptionKey: EncryptionKey
  let signingKey: VerificationKey
  /// PKCS #10, DER.
  let certificateRequest: [UInt8]

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

/// What a vehicle receives in order to belong to the fleet.
package struct VehicleAdmission: Sendable {
  let name: String
  /// The operator's present key.
  let operatorKey: VerificationKey
  let host: BrokerHost
  let port: UInt16
  /// PEM: the authority that broker and vehicle trust.
  let authority: [UInt8]
  /// PEM: for the request's key.
  let certificate: [UInt8]

  /// - Throws: `RequestError.unusableAdmission` with the faulty part.
  package init(_ json: JSON) throws(RequestError) {
    func part<Value>(_ name: String, _ value: Value?) throws(RequestError) -> Value {
      guard let value else { throw .unusableAdmission(name) }
      return value
    }
    name = try part("name", json["name"]?.string.flatMap { Vehicle.isName($0) ? $0 : nil })
    operatorKey = try part("keys", json["keys"]?.array?.first.flatMap { try? VerificationKey(jwk: $0) })
    host = try part("broker", json["broker"]?["host"]?.string.flatMap(BrokerHost.init))
    port = try part(
      "broker", json["broker"]?["port"]?.integer.flatMap { UInt16(exactly: $0) }.flatMap { $0 > 0 ? $0 : nil })
    authority = try part("authority", json["authority"]?.string.map { Array($0.utf8) })
    certificate = try part("certificate", json["certificate"]?.string.map { Array($0.utf8) })
  }
}

/// Who admits a new vehicle.
package enum VehicleIssuer {
  /// The vehicle's own operator, who is made together with the vehicle.
  case own
  /// The operator of a fleet, in a folder on this computer.
  case place(OperatorPlace)
  /// The operator of a fleet, for a vehicle whose private keys were made on the vehicle: these are the public keys.
  case publicKeys(OperatorPlace, VehicleKeys)
  /// The server of a fleet, which the closure asks. The vehicle is made where it stays, and keeps its private keys.
  case server((VehicleEnrolment) throws -> VehicleAdmission)

  /// The operator of a fleet whose folder is on this computer.
  package var operatorPlace: OperatorPlace? {
    switch self {
    case .place(let place), .publicKeys(let place, _): place
    case .own, .server: nil
    }
  }
}
