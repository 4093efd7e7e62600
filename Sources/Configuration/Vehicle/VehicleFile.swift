package import Domain

/// `vehicle.toml`: a vehicle, how to reach its controller, and, in a rider's own copy, who the rider is.
///
/// Paths in a value that was read lead from the working folder; in one that is to be written (`render`) they are the
/// text that will stand in the file, and lead from the file's folder.
package struct VehicleFile: Equatable, Sendable {
  /// Where the file is, for errors.
  package var path: String
  /// Name, UUID and steps: enough to locate oneself.
  package var vehicle: Vehicle
  /// The public key of whoever signs tokens and codes for the vehicle, Ed25519, 32 bytes.
  package var operatorKey: [UInt8]?
  /// When `operator` signed what the file says of the vehicle, Unix time; nil where it came unsigned.
  package var signed: Int64?
  package var topic: TopicPrefix?
  package var broker: Broker?
  /// `cert` and `key` of `[broker]`.
  package var certificate: ClientCertificate?
  package var controller: ControllerKeys?
  package var rider: Rider?

  package init(
    path: String, vehicle: Vehicle, operatorKey: [UInt8]? = nil, signed: Int64? = nil, topic: TopicPrefix? = nil,
    broker: Broker? = nil, certificate: ClientCertificate? = nil, controller: ControllerKeys? = nil, rider: Rider? = nil
  ) {
    self.path = path
    self.vehicle = vehicle
    self.operatorKey = operatorKey
    self.signed = signed
    self.topic = topic
    self.broker = broker
    self.certificate = certificate
    self.controller = controller
    self.rider = rider
  }

  package init(reading path: String) throws(ConfigurationError) {
    try self.init(TOMLDocument(reading: path))
  }

  package init(parsing bytes: [UInt8], path: String) throws(ConfigurationError) {
    try self.init(TOMLDocument(parsing: bytes, path: path))
  }

  enum Key: String, TOMLKey {
    case name, uuid
    case operatorKey = "operator"
    case signed, topic, broker, controller, steps, rider
  }

  init(_ document: TOMLDocument) throws(ConfigurationError) {
    let table = try TOMLTable<Key>(document)
    path = document.path
    let name = try table.required(.name, .vehicleName)
    let uuid = try table.required(.uuid, .uuid)
    vehicle = try Self.vehicle(name: name, uuid: uuid, try table.tables(.steps), in: table)
    operatorKey = try table.optional(.operatorKey, .key)
    // Below 2^53, as in the code.
    signed = try table.optional(.signed, .integer(in: 0...(1 << 53) - 1)).map(Int64.init)
    topic = try table.optional(.topic, .topic)
    if let table = try table.table(.broker, Broker.Key.self) {
      broker = try Broker(table)
      certificate = try ClientCertificate(table)
    }
    controller = try table.table(.controller).map(ControllerKeys.init)
    rider = try table.table(.rider).map(Rider.init)
  }

  enum StepKey: String, TOMLKey {
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
    do throws(Vehicle.Problem) {
      return try Vehicle(name: name, uuid: uuid, steps: steps)
    } catch {
      // Of two steps that share something the second is at fault, and the first is shown.
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
  enum Key: String, TOMLKey {
    case host, port, ca, cert, key
  }

  fileprivate init(_ table: TOMLTable<Key>) throws(ConfigurationError) {
    host = try table.required(.host, .text)
    port = try table.optional(.port, .port) ?? Broker.standardPort
    ca = try table.required(.ca, table.path)
  }
}

extension ClientCertificate {
  /// Nil when neither `cert` nor `key` is there.
  init?(_ table: TOMLTable<Broker.Key>) throws(ConfigurationError) {
    guard table.has(.cert) || table.has(.key) else { return nil }
    cert = try table.required(.cert, table.path)
    key = try table.required(.key, table.path)
  }
}

extension ControllerKeys {
  fileprivate enum Key: String, TOMLKey {
    case encryption = "encryption_key"
    case signing = "signing_key"
  }

  fileprivate init(_ table: TOMLTable<Key>) throws(ConfigurationError) {
    encryption = try table.required(.encryption, .key)
    signing = try table.required(.signing, .key)
  }
}

extension Rider {
  fileprivate enum Key: String, TOMLKey {
    case name
    case deviceKey = "device_key"
    case token
  }

  fileprivate init(_ table: TOMLTable<Key>) throws(ConfigurationError) {
    name = try table.required(.name, .text)
    deviceKey = try table.required(.deviceKey, table.path)
    token = try table.required(.token, table.path)
  }
}
