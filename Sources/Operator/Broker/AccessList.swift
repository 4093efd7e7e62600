public import Domain
import Encoding
import StepProtocol
import SystemIO

/// What a broker has to know of a vehicle.
public struct VehicleTopics: Sendable, Equatable {
  public let vehicle: UUID
  public let topic: TopicPrefix
  public let steps: [Step]

  public init(of vehicle: UUID, topic: TopicPrefix, steps: [Step]) {
    (self.vehicle, self.topic, self.steps) = (vehicle, topic, steps)
  }
}

/// Who may use which topics of the broker: acl_file in mosquitto.conf(5). Everything else is forbidden.
struct AccessList {
  private enum Access: String {
    case read, write, readwrite

    var reads: Bool { self != .write }
    var writes: Bool { self != .read }
  }

  /// What the clients with this common name in their certificates may do.
  private struct Grant {
    let user: String
    var topics: [(access: Access, name: String)]
  }

  private let vehicles: [VehicleTopics]

  init(_ vehicles: [VehicleTopics]) { self.vehicles = vehicles }

  private var grants: [Grant] {
    var grants: [Grant] = []
    var own = Grant(user: CertificateRole.operator.commonName, topics: [])
    for vehicle in vehicles {
      let topic = vehicle.topic
      func topics(setPosition: Access?, status: Access) -> [(access: Access, name: String)] {
        vehicle.steps.flatMap { step in
          (setPosition.map { [($0, topic.setPosition(step.id))] } ?? []) + [(status, topic.status(step.id))]
        }
      }
      grants.append(
        Grant(
          user: CertificateRole.rider(of: vehicle.vehicle).commonName,
          topics: [(.read, topic.availability)] + topics(setPosition: .write, status: .read)))
      grants.append(
        Grant(
          user: CertificateRole.watcher(of: vehicle.vehicle).commonName,
          topics: [(.read, topic.availability)] + topics(setPosition: nil, status: .read)))
      // The controller reads its own availability: the will of an old, replaced connection may come late.
      grants.append(
        Grant(
          user: CertificateRole.controller(of: vehicle.vehicle).commonName,
          topics: [(.readwrite, topic.availability), (.read, topic.notice), (.write, topic.events)]
            + topics(setPosition: .read, status: .write)))
      own.topics +=
        [(.read, topic.availability), (.readwrite, topic.notice), (.read, topic.events)]
        + topics(setPosition: nil, status: .read)
    }
    return grants + [own]
  }

  /// The list for each kind of broker.
  ///
  /// - Parameter port: the port of the MQTT listener.
  func files(port: UInt16) -> [NewFile] {
    [NewFile(VehiclePaths.accessList, text), NewFile(VehiclePaths.rabbitDefinitions, definitions(port: port))]
  }

  /// For mosquitto.
  private var text: String {
    """
    # Who may use which topics; all other use is forbidden. A user is the common name of a client's certificate. It is a
    # role and not a person, so that the broker learns no names.

    """
      + grants.map { grant in
        "\nuser \(grant.user)\n" + grant.topics.map { "topic \($0.access.rawValue) \($0.name)\n" }.joined()
      }.joined()
  }

  /// The same for RabbitMQ (its "definitions"): users without a password, who are identified by their certificates.
  ///
  /// - Parameter port: the port of the MQTT listener. Without the mapping, the plugin would take the text before a
  ///   colon in a user's name as a virtual host.
  private func definitions(port: UInt16) -> String {
    func pattern(_ topics: [String]) -> JSON {
      .string(topics.isEmpty ? "^$" : "^(\(topics.map(Self.routingPattern).joined(separator: "|")))$")
    }
    let grants = grants
    let resources: JSON = "^(mqtt-subscription-.*|amq\\.topic)$"
    let definitions: JSON = [
      "vhosts": [["name": "/"]],
      "users": .array(
        grants.map {
          [
            "name": .string($0.user), "password_hash": "", "hashing_algorithm": "rabbit_password_hashing_sha256",
            "tags": "",
          ]
        }),
      "permissions": .array(
        grants.map {
          [
            "user": .string($0.user), "vhost": "/", "configure": "^mqtt-subscription-.*$", "write": resources,
            "read": resources,
          ]
        }),
      "topic_permissions": .array(
        grants.map { grant in
          [
            "user": .string(grant.user), "vhost": "/", "exchange": "amq.topic",
            "write": pattern(grant.topics.filter(\.access.writes).map(\.name)),
            "read": pattern(grant.topics.filter(\.access.reads).map(\.name)),
          ]
        }),
      "global_parameters": [
        ["name": "mqtt_port_to_vhost_mapping", "value": .object([.init("\(port)", "/")])]
      ],
    ]
    return definitions.text + "\n"
  }

  /// A topic in RabbitMQ's routing form: with `.` and `/` exchanged. Of the characters in a topic, only `.` has a
  /// meaning in a pattern.
  private static func routingPattern(_ topic: String) -> String {
    topic.map { $0 == "/" ? "\\." : $0 == "." ? "/" : String($0) }.joined()
  }
}
