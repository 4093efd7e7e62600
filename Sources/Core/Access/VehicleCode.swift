public import Domain
import Encoding
public import StepProtocol

/// The part of a vehicle file that is the same for every rider, signed by the operator. Riders scan it once.
///
/// A compact JWS whose header carries the operator's public key (`jwk`, RFC 7515 4.1.3), because the first reader has
/// no other way to learn it. The signature proves which key signed the code, and that nothing has changed since. People
/// must check that this key is the operator's (`Thumbprint.grouped`). The code contains no secret.
public struct VehicleCode: Sendable, Equatable {
  /// The most that a QR code can hold (ISO/IEC 18004, version 40, level L), bytes.
  public static let maximumSize = 2953
  /// How far ahead of a reader's clock a code may be signed, seconds. A code from the future would make all later codes
  /// seem older than it.
  static let longestLead: Int64 = 86_400

  /// Includes measured powers and fixed minors, but not the steps' tags.
  public let vehicle: Vehicle
  public let topic: TopicPrefix
  /// The broker's name or address.
  public let host: String
  public let port: UInt16
  /// The authority that must have issued the broker's certificate, DER (X.509). It is not parsed here.
  public let authority: [UInt8]
  /// The key that commands are encrypted to.
  public let encryptionKey: EncryptionKey
  /// The key that verifies statements.
  public let signingKey: VerificationKey
  /// When it was signed, seconds of Unix time.
  public let issued: Int64

  public init(
    vehicle: Vehicle, topic: TopicPrefix, host: String, port: UInt16, authority: [UInt8],
    encryptionKey: EncryptionKey, signingKey: VerificationKey, issued: Int64
  ) {
    self.vehicle = vehicle
    self.topic = topic
    self.host = host
    self.port = port
    self.authority = authority
    self.encryptionKey = encryptionKey
    self.signingKey = signingKey
    self.issued = issued
  }

  /// The code's text. It may be longer than a QR code can hold (`maximumSize`).
  public func signed(by operatorKey: SigningKey) -> String {
    let claims: JSON = [
      "uuid": .string(vehicle.uuid.description), "name": .string(vehicle.name), "topic": .string(topic.description),
      "host": .string(host), "port": .integer(Int64(port)), "ca": .string(Base64URL.encode(authority)),
      "encryption_key": .string(Base64URL.encode(encryptionKey.bytes)),
      "signing_key": .string(Base64URL.encode(signingKey.bytes)), "steps": .array(vehicle.steps.map(\.json)),
      "iat": .integer(issued),
    ]
    return SignedObject.sign(claims, as: .vehicle, by: operatorKey)
  }

  /// Reads a code.
  ///
  /// - Parameters:
  ///   - text: exactly one code, without white space around it.
  ///   - pinned: the operator's key, if it is already known.
  ///   - now: seconds of Unix time; nil if the time is unknown.
  /// - Returns: the code, and the key that signed it.
  /// - Throws: `unknownKey` if the pinned key did not sign it; `issuedInFuture`.
  public static func verify(
    _ text: some StringProtocol, pinned: VerificationKey? = nil, now: Int64? = nil
  ) throws(ProtocolError) -> (code: VehicleCode, operatorKey: VerificationKey) {
    guard text.utf8.count <= maximumSize else { throw .malformed("larger than \(maximumSize) bytes") }
    let object = try SignedObject(parsing: text, as: .vehicle)
    guard let key = object.embeddedKey else { throw .malformed("jwk is missing") }
    if let pinned, pinned != key { throw .unknownKey }
    try object.verify(by: key)
    let code = try VehicleCode(claims: object.payload)
    if let now, code.issued - longestLead > now { throw .issuedInFuture }
    return (code, key)
  }

  private init(claims: JSON) throws(ProtocolError) {
    var members = try ObjectReader(claims, of: "the vehicle's code")
    let uuid = try members.uuid("uuid")
    let name = try members.take("name", Vehicle.nameRule) { value in
      value.string.flatMap { Vehicle.isName($0) ? $0 : nil }
    }
    topic = try members.take("topic", "the beginning of MQTT topics") { $0.string.flatMap { TopicPrefix($0) } }
    host = try members.take("host", "the name or the address of a computer") { $0.string.flatMap(VehicleCode.host) }
    port = try members.take("port", "1 to 65535") { value in
      value.integer.flatMap { UInt16(exactly: $0) }.flatMap { $0 > 0 ? $0 : nil }
    }
    authority = try members.take("ca", "base64url of a certificate") { value in
      value.string.flatMap { Base64URL.decode($0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
    encryptionKey = try members.take("encryption_key", "an X25519 key") { value in
      value.string.flatMap { Base64URL.decode($0) }.flatMap { try? EncryptionKey($0) }
    }
    signingKey = try members.take("signing_key", "an Ed25519 key") { value in
      value.string.flatMap { Base64URL.decode($0) }.flatMap { try? VerificationKey($0) }
    }
    let items = try members.take("steps", "a list of 1 to 8 steps") { value in
      value.array.flatMap { (1...8).contains($0.count) ? $0 : nil }
    }
    var steps: [Step] = []
    for item in items { steps.append(try Step(item)) }
    issued = try members.count("iat")
    try members.end()
    do throws(Vehicle.Problem) {
      vehicle = try Vehicle(name: name, uuid: uuid, steps: steps)
    } catch {
      throw .malformed("two steps share an id, a side or a major")
    }
  }

  /// Letters, digits, points, hyphens, and the colons of IPv6: text that needs no quoting anywhere.
  private static func host(_ text: String) -> String? {
    let allowed = text.utf8.allSatisfy { $0.isASCIIAlphanumeric || ".-:".utf8.contains($0) }
    return allowed && (1...253).contains(text.utf8.count) ? text : nil
  }
}

extension Thumbprint {
  /// For people to compare: the thumbprint in groups of four characters.
  public var grouped: String {
    let characters = Array(description)
    return stride(from: 0, to: characters.count, by: 4)
      .map { String(characters[$0..<min($0 + 4, characters.count)]) }.joined(separator: " ")
  }
}

extension Step {
  fileprivate var json: JSON {
    var members: [JSON.Member] = [
      .init("id", .string(id.description)), .init("side", .string(side.rawValue)),
      .init("major", .integer(Int64(major))),
    ]
    if let measuredPower { members.append(.init("measured_power", .integer(Int64(measuredPower)))) }
    if let minor { members.append(.init("minor", .integer(Int64(minor)))) }
    return .object(members)
  }

  fileprivate init(_ value: JSON) throws(ProtocolError) {
    var members = try ObjectReader(value, of: "a step")
    self.init(
      id: try members.step("id"), side: try members.word("side", Side.self),
      major: try members.take("major", "0 to 65535") { $0.integer.flatMap { UInt16(exactly: $0) } },
      measuredPower: try members.takeIfPresent("measured_power", "-128 to 127 dBm") { value in
        value.integer.flatMap { Int8(exactly: $0) }
      },
      minor: try members.takeIfPresent("minor", "0 to 65535") { $0.integer.flatMap { UInt16(exactly: $0) } })
    try members.end()
  }
}
