public import Domain

/// A client of the vehicles' broker. It is a role and not a person, so that the broker learns no names.
public enum BrokerClient: Hashable, Sendable {
  /// The controller of a vehicle.
  case controller(of: UUID)
  /// The publisher of notices.
  case `operator`
  /// Any rider of a vehicle. The rider's name is in the token, which the broker cannot read.
  case rider(of: UUID)
  /// A client that may read the status of a vehicle's steps, and nothing else.
  case watcher(of: UUID)

  /// The client's user name: the common name of its certificate.
  public var name: String {
    switch self {
    case .controller(let vehicle): "controller:\(vehicle)"
    case .operator: "operator"
    case .rider(let vehicle): "rider:\(vehicle)"
    case .watcher(let vehicle): "watcher:\(vehicle)"
    }
  }

  /// - Returns: nil for a name in any other form.
  public init?(name: String) {
    let parts = name.utf8.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
    guard let vehicle = parts.last.flatMap({ UUID(String($0) ?? "") }) else {
      guard name == Self.operator.name else { return nil }
      self = .operator
      return
    }
    let clients: [BrokerClient] = [.controller(of: vehicle), .rider(of: vehicle), .watcher(of: vehicle)]
    guard let client = clients.first(where: { $0.name == name }) else { return nil }
    self = client
  }

  /// The vehicle whose topics the client may use; nil for all.
  public var vehicle: UUID? {
    switch self {
    case .controller(let vehicle), .rider(let vehicle), .watcher(let vehicle): vehicle
    case .operator: nil
    }
  }
}

/// What a broker has to know of a vehicle.
public struct VehicleTopics: Sendable, Equatable {
  public let vehicle: UUID
  public let topic: TopicPrefix
  public let steps: [Step]

  public init(of vehicle: UUID, topic: TopicPrefix, steps: [Step]) {
    (self.vehicle, self.topic, self.steps) = (vehicle, topic, steps)
  }

  /// Whether they are those that a vehicle gets unless somebody chooses others: `vehicles/UUID/…`, with steps `left`
  /// and `right`. For these, mosquitto's plugin has the same rules (Fleet/Sources/MosquittoPlugin).
  public var areUsual: Bool {
    topic.description == "vehicles/\(vehicle)" && steps.allSatisfy { ["left", "right"].contains($0.id.description) }
  }

  /// Whether they are among those that another vehicle usually has.
  public var areAnothers: Bool {
    let levels = topic.description.split(separator: "/")
    guard levels.count > 1, levels[0] == "vehicles", let vehicle = UUID(String(levels[1])) else { return false }
    return vehicle != self.vehicle || levels.count > 2
  }

  /// What a client may do with a topic.
  public enum Access: String, Sendable {
    case read, write, readwrite

    func includes(_ other: Access) -> Bool { self == other || self == .readwrite }
  }

  /// The clients that use this vehicle's topics alone.
  var clients: [BrokerClient] { [.rider(of: vehicle), .watcher(of: vehicle), .controller(of: vehicle)] }

  /// What a client may do with this vehicle's topics. Everything else is forbidden.
  func allowed(to client: BrokerClient) -> [(access: Access, topic: String)] {
    func topics(setPosition: Access?, status: Access) -> [(access: Access, topic: String)] {
      steps.flatMap { step in
        (setPosition.map { [($0, topic.setPosition(step.id))] } ?? []) + [(status, topic.status(step.id))]
      }
    }
    switch client {
    case .rider(vehicle): return [(.read, topic.availability)] + topics(setPosition: .write, status: .read)
    case .watcher(vehicle): return [(.read, topic.availability)] + topics(setPosition: nil, status: .read)
    case .controller(vehicle):
      // The controller reads its own availability: the will of an old, replaced connection may come late.
      return [(.readwrite, topic.availability), (.read, topic.notice), (.write, topic.events)]
        + topics(setPosition: .read, status: .write)
    case .operator:
      return [(.read, topic.availability), (.readwrite, topic.notice), (.read, topic.events)]
        + topics(setPosition: nil, status: .read)
    case .rider, .watcher, .controller: return []
    }
  }

  /// Whether a client may do that.
  public func allows(_ access: Access, of name: String, to client: BrokerClient) -> Bool {
    allowed(to: client).contains { $0.topic == name && $0.access.includes(access) }
  }
}
