package import Hummingbird
import Operator
import Store
package import Web

extension FleetService {
  /// The routes for RabbitMQ, which asks what its clients may do (plugin rabbitmq_auth_backend_http). The answer is
  /// `allow` or `deny`. A client has shown its certificate to the broker, and its user name is the common name there.
  package func addBrokerRoutes(to router: some RouterMethods<FleetContext>) {
    answer("user", in: router) { [self] question in
      // Who brings a password has chosen the user name, whatever the certificate says.
      guard !question.has("password"), let client = question.client else { return false }
      guard let vehicle = client.vehicle else { return true }
      return try await store.read { try VehicleTable.topics(of: vehicle, in: $0) } != nil
    }
    answer("vhost", in: router) { $0.client != nil && $0["vhost"] == "/" }
    answer("resource", in: router) { question in
      guard question.client != nil, question["vhost"] == "/", let name = question["name"] else { return false }
      switch (question["resource"], question["permission"]) {
      // The queues in which the plugin rabbitmq_mqtt keeps what a client has subscribed to. Only that plugin listens.
      case ("queue", "configure"), ("queue", "write"), ("queue", "read"): return name.hasPrefix("mqtt-subscription-")
      case ("exchange", "write"), ("exchange", "read"): return name == "amq.topic"
      default: return false
      }
    }
    answer("topic", in: router) { [self] question in
      guard let client = question.client, question["vhost"] == "/", question["resource"] == "topic",
        question["name"] == "amq.topic", let access = question["permission"].flatMap(VehicleTopics.Access.init),
        let topic = question["routing_key"].flatMap(Self.topic)
      else { return false }
      // What the server follows.
      if client == .operator, access == .read, topic == "vehicles/*/events" { return true }
      return try await store.read { transaction in
        guard let vehicle = client.vehicle else {
          return try VehicleTable.topics(ofTopic: topic, in: transaction).contains {
            $0.allows(access, of: topic, to: client)
          }
        }
        return try VehicleTable.topics(of: vehicle, in: transaction)?.allows(access, of: topic, to: client) ?? false
      }
    }
  }

  private func answer(
    _ name: RouterPath, in router: some RouterMethods<FleetContext>,
    _ isAllowed: @escaping @Sendable (FormFields) async throws -> Bool
  ) {
    router.post("/broker/\(name)") { request, _ in
      guard let question = try await FormFields(of: request) else { throw Problem.malformed("the body is no form") }
      return try await isAllowed(question) ? "allow" : "deny"
    }
  }

  /// The topic of a routing key, which has `.` for `/`; nil for a topic with `.`, from which RabbitMQ 3.10 makes the
  /// same routing key as from another one with `/`. So a vehicle whose topics have a `.` cannot use RabbitMQ.
  private static func topic(_ routingKey: String) -> String? {
    routingKey.contains("/") ? nil : String(routingKey.map { $0 == "." ? "/" : $0 })
  }
}

extension FormFields {
  fileprivate var client: BrokerClient? { self["username"].flatMap(BrokerClient.init(name:)) }
}
