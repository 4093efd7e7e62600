import Booking
import Domain
import FleetTestSupport
import HTTPTypes
import Hummingbird
import Testing
import Web

@testable import API

/// What RabbitMQ asks, with the words in which it asks.
@Suite struct BrokerRouteTests {
  /// - Returns: whether the answer is `allow`.
  private func allows(_ bench: Bench, _ question: String, _ fields: String) async throws -> Bool {
    let router = Router(context: FleetContext.self)
    router.add(middleware: Watch(Metrics()))
    bench.service.addBrokerRoutes(to: router)
    let answer = try await bench.ask(.post, "/broker/\(question)", by: nil, form: fields, router: router)
    // RabbitMQ takes every other status, and every other word, for a refusal.
    #expect(answer.status == 200 || answer.status == 400, "\(answer.text)")
    return answer.status == 200 && answer.text == "allow"
  }

  private func may(_ bench: Bench, _ user: String, _ permission: String, _ key: String) async throws -> Bool {
    try await allows(
      bench, "topic",
      "username=\(user)&vhost=%2F&resource=topic&name=amq.topic&permission=\(permission)&tags=&routing_key=\(key)"
        + "&variable_map.client_id=x&variable_map.username=\(user)&variable_map.vhost=%2F")
  }

  @Test func `users are the operator, and the clients of vehicles that are known`() async throws {
    let (bench, stranger) = (try await Bench(), UUID.random())
    let car = try await bench.id(of: "car")
    for user in ["operator", "rider%3A\(car)", "watcher%3A\(car)", "controller%3A\(car)"] {
      #expect(try await allows(bench, "user", "username=\(user)"), "\(user)")
      for password in ["", "x"] {
        #expect(
          try await !allows(bench, "user", "username=\(user)&password=\(password)&vhost=%2F&client_id=x"), "\(user)")
      }
    }
    for user in [
      "", "guest", "broker", "operator%3A\(car)", "rider", "rider%3A", car, "%3A\(car)", "rider%3A\(stranger)",
      "rider%3A\(car.uppercased())", "rider%3A%20\(car)", "rider%3A\(car)%00", "Operator", "rider%3Arider%3A\(car)",
    ] { #expect(try await !allows(bench, "user", "username=\(user)"), "\(user)") }
    #expect(try await !allows(bench, "user", "username=operator&username=guest"))
    #expect(try await !allows(bench, "user", "%"))
  }

  @Test func `a removed vehicle's clients are admitted until the operator has forgotten it`() async throws {
    let bench = try await Bench()
    let user = "username=rider%3A\(try await bench.id(of: "car"))"
    _ = try await bench.ride(TestDevice())
    try await bench.service.setService(.removed, of: "car")
    #expect(try await allows(bench, "user", user))
    try await bench.tell()
    await bench.service.agreeOnVehicles()
    #expect(try await !allows(bench, "user", user))
  }

  @Test func `clients have the queues of MQTT, and one exchange`() async throws {
    let bench = try await Bench()
    func may(_ kind: String, _ name: String, _ permission: String, vhost: String = "%2F") async throws -> Bool {
      try await allows(
        bench, "resource",
        "username=operator&vhost=\(vhost)&resource=\(kind)&name=\(name)&permission=\(permission)&tags=&client_id=x")
    }
    for permission in ["configure", "write", "read"] {
      #expect(try await may("queue", "mqtt-subscription-x", permission))
      #expect(try await !may("queue", "mine", permission))
      #expect(try await !may("exchange", "amq.direct", permission))
      #expect(try await !may("queue", "mqtt-subscription-x", permission, vhost: "other"))
      #expect(try await may("exchange", "amq.topic", permission) == (permission != "configure"))
    }
    #expect(try await allows(bench, "vhost", "username=operator&vhost=%2F&ip=127.0.0.1"))
    #expect(try await !allows(bench, "vhost", "username=operator&vhost=other"))
    #expect(try await !allows(bench, "vhost", "username=guest&vhost=%2F"))
  }

  @Test func `a topic with a dot is nobody's, because RabbitMQ takes it for another one's`() async throws {
    let bench = try await Bench()
    bench.issuer.have(PlayedIssuer.record("dotted", topic: "car.left"), in: "dotted")
    _ = try await bench.service.addVehicle("dotted")
    let user = "rider%3A\(try await bench.id(of: "dotted"))"
    #expect(try await allows(bench, "user", "username=\(user)"))
    for key in ["car.left.availability", "car%2Fleft.availability", "car%2Eleft.availability"] {
      #expect(try await !may(bench, user, "read", key), "\(key)")
    }
  }

  @Test(arguments: Engine.forRules)
  func `each client may use the topics that mosquitto's list has for it`(_ engine: Engine) async throws {
    let bench = try await Bench(engine)
    let (car, van) = (try await bench.id(of: "car"), try await bench.id(of: "van"))
    // The topics of the vehicles are their names.
    let topics = ["availability", "operator", "events", "left.status", "left.set_position"]
    let may: [String: (read: Set<String>, write: Set<String>)] = [
      "rider": (["availability", "left.status"], ["left.set_position"]),
      "watcher": (["availability", "left.status"], []),
      "controller": (["availability", "operator", "left.set_position"], ["availability", "events", "left.status"]),
      "operator": (["availability", "operator", "events", "left.status"], ["operator"]),
    ]
    for (role, allowed) in may {
      let user = role == "operator" ? role : "\(role)%3A\(car)"
      for topic in topics {
        let read = try await self.may(bench, user, "read", "car.\(topic)")
        let write = try await self.may(bench, user, "write", "car.\(topic)")
        #expect((read, write) == (allowed.read.contains(topic), allowed.write.contains(topic)), "\(role) \(topic)")
        // Another vehicle's are the operator's alone.
        let others = role == "operator" && allowed.read.contains(topic)
        #expect(try await self.may(bench, user, "read", "van.\(topic)") == others, "\(role) \(topic)")
      }
      for other in ["%23", "%2A", "car.%23", "car.%2A.status", "car.middle.status", "car", "car.", ".car.events", ""] {
        #expect(try await !self.may(bench, user, "read", other), "\(role) \(other)")
        #expect(try await !self.may(bench, user, "write", other), "\(role) \(other)")
      }
      #expect(try await !self.may(bench, user, "configure", "car.availability"))
    }
    #expect(try await self.may(bench, "controller%3A\(van)", "write", "van.events"))
    #expect(try await !allows(bench, "topic", "username=operator&vhost=%2F&permission=read&routing_key=car.events"))
  }
}
