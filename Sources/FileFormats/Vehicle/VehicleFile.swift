package import Domain
package import Geography
package import MQTT
package import StepProtocol

/// `vehicle.toml`: a vehicle, how to reach its controller, and, in a rider's own copy, the rider's identity.
///
/// In a value that was read, paths are relative to the working folder. In a value to be written (`render`), they are
/// the text of the file, and relative to the file's folder.
package struct VehicleFile: Equatable, Sendable {
  /// The public keys of a vehicle's controller.
  package struct ControllerKeys: Equatable, Sendable {
    /// The key to which commands are encrypted.
    package var encryption: EncryptionKey
    /// The key that verifies statements.
    package var signing: VerificationKey

    package init(encryption: EncryptionKey, signing: VerificationKey) {
      self.encryption = encryption
      self.signing = signing
    }
  }

  /// A rider's identity for a controller.
  package struct Rider: Equatable, Sendable {
    package var name: String
    /// The path of the private JWK that signs commands; only its owner may read it.
    package var deviceKey: String
    /// The path of the token, a JWT that is bound to that key.
    package var token: String

    package init(name: String, deviceKey: String, token: String) {
      self.name = name
      self.deviceKey = deviceKey
      self.token = token
    }
  }

  /// The path of the file, for errors.
  package var path: String
  /// Name, UUID and steps: enough to locate the rider.
  package var vehicle: Vehicle
  /// The key that verifies the operator's tokens and codes for the vehicle.
  package var operatorKey: VerificationKey?
  /// When the operator signed the file's data about the vehicle, Unix time; nil for an unsigned file.
  package var signed: Int64?
  package var topic: TopicPrefix?
  /// Always with TLS; has an identity if the file has `cert` and `key`.
  package var broker: Broker?
  package var controller: ControllerKeys?
  package var rider: Rider?
  /// Where the vehicle is parked, for people who look for it.
  package var place: Coordinate?

  package init(
    path: String, vehicle: Vehicle, operatorKey: VerificationKey? = nil, signed: Int64? = nil,
    topic: TopicPrefix? = nil, broker: Broker? = nil, controller: ControllerKeys? = nil, rider: Rider? = nil,
    place: Coordinate? = nil
  ) {
    self.path = path
    self.vehicle = vehicle
    self.operatorKey = operatorKey
    self.signed = signed
    self.topic = topic
    self.broker = broker
    self.controller = controller
    self.rider = rider
    self.place = place
  }

  package init(reading path: String) throws {
    try self.init(TOMLDocument(reading: path))
  }

  package init(parsing bytes: [UInt8], path: String) throws(ConfigurationError) {
    try self.init(TOMLDocument(parsing: bytes, path: path))
  }

  package enum Key: String, TOMLKey {
    case name, uuid
    case operatorKey = "operator"
    case signed, topic, broker, controller, steps, rider, place
  }

  package init(_ document: TOMLDocument) throws(ConfigurationError) {
    let table = try TOMLTable<Key>(document)
    path = document.path
    let name = try table.required(.name, .vehicleName)
    let uuid = try table.required(.uuid, .uuid)
    vehicle = try Self.vehicle(name: name, uuid: uuid, try table.tables(.steps), in: table)
    operatorKey = try table.optional(.operatorKey, .verificationKey)
    // Below 2^53, as in the code.
    signed = try table.optional(.signed, .integer(in: 0...(1 << 53) - 1)).map(Int64.init)
    topic = try table.optional(.topic, .topic)
    broker = try table.table(.broker).map(Broker.init)
    controller = try table.table(.controller).map(ControllerKeys.init)
    rider = try table.table(.rider).map(Rider.init)
    place = try table.table(.place).flatMap(Self.coordinate)
  }

  private static func coordinate(_ table: TOMLTable<PlaceKey>) throws(ConfigurationError) -> Coordinate? {
    Coordinate(
      latitude: try table.required(.latitude, .number(in: -90...90)),
      longitude: try table.required(.longitude, .number(in: -180...180)))
  }

  package enum BrokerKey: String, TOMLKey {
    case host, port, ca, cert, key
  }

  fileprivate enum ControllerKey: String, TOMLKey {
    case encryption = "encryption_key"
    case signing = "signing_key"
  }

  private enum PlaceKey: String, TOMLKey {
    case latitude, longitude
  }

  fileprivate enum RiderKey: String, TOMLKey {
    case name
    case deviceKey = "device_key"
    case token
  }

  package enum StepKey: String, TOMLKey {
    case id, side, major
    case measuredPower = "measured_power"
    case minor, tags
  }

  private static func vehicle(
    name: String, uuid: UUID, _ tables: [TOMLTable<StepKey>], in file: TOMLTable<Key>
  ) throws(ConfigurationError) -> Vehicle {
    var steps: [Step] = []
    for table in tables {
      steps.append(
        Step(
          id: try table.required(.id, .stepID), side: try table.required(.side, .word(Side.allCases)),
          major: try table.required(.major, .uint16), measuredPower: try table.optional(.measuredPower, .int8),
          minor: try table.optional(.minor, .uint16), tags: try table.optional(.tags, .tagUIDs) ?? []))
    }
    do {
      return try Vehicle(name: name, uuid: uuid, steps: steps)
    } catch {
      // If two steps share a value, the error is about the second.
      func twice(_ key: StepKey, _ value: String, _ shares: (Step) -> Bool) -> ConfigurationError {
        let sharing = steps.indices.filter { shares(steps[$0]) }
        return tables[sharing[1]].error(
          key, "\(value) is taken by the step in line \(tables[sharing[0]].line(of: key) ?? 0)")
      }
      switch error {
      case .noSteps: throw file.missing(.steps, because: ": a vehicle has at least one [[steps]]")
      case .sameID(let id): throw twice(.id, TOMLText.quoted(id.description)) { $0.id == id }
      case .sameSide(let side): throw twice(.side, TOMLText.quoted(side.rawValue)) { $0.side == side }
      case .sameTag(let tag): throw twice(.tags, "\(tag)") { $0.tags.contains(tag) }
      case .sameMajor(let major): throw twice(.major, String(major)) { $0.major == major }
      }
    }
  }
}

extension Broker {
  fileprivate init(_ table: TOMLTable<VehicleFile.BrokerKey>) throws(ConfigurationError) {
    self.init(
      host: try table.host(.host, port: "port"), port: try table.optional(.port, .port) ?? Self.standardPort,
      tls: TLS(
        authority: try table.required(.ca, table.path),
        identity: table.has(.cert) || table.has(.key) ? try Identity(table) : nil))
  }
}

extension Broker.Identity {
  package init(_ table: TOMLTable<VehicleFile.BrokerKey>) throws(ConfigurationError) {
    self.init(certificate: try table.required(.cert, table.path), key: try table.required(.key, table.path))
  }
}

extension VehicleFile.ControllerKeys {
  fileprivate init(_ table: TOMLTable<VehicleFile.ControllerKey>) throws(ConfigurationError) {
    encryption = try table.required(.encryption, .encryptionKey)
    signing = try table.required(.signing, .verificationKey)
  }
}

extension VehicleFile.Rider {
  fileprivate init(_ table: TOMLTable<VehicleFile.RiderKey>) throws(ConfigurationError) {
    name = try table.required(.name, .text)
    deviceKey = try table.required(.deviceKey, table.path)
    token = try table.required(.token, table.path)
  }

  /// The token is bound to another key than the device's: no controller answers such a rider.
  package var otherDevice: ConfigurationError {
    ConfigurationError(
      token, "the token is bound to another device key than \(deviceKey): take both as the operator made them")
  }
}

extension VehicleFile {
  /// A part that some vehicle files lack.
  package func present<Part>(_ part: Part?, _ name: String, _ purpose: String) throws(ConfigurationError) -> Part {
    guard let part else { throw ConfigurationError(path, "\(name) is missing: \(purpose)") }
    return part
  }
}
