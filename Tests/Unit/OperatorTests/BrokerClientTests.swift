import Domain
import Operator
import Testing

@Suite("Broker clients")
struct BrokerClientTests {
  @Test("have names that are read back, and no others")
  func names() {
    let vehicle = UUID.random()
    for client: BrokerClient in [
      .operator, .rider(of: vehicle), .watcher(of: vehicle), .controller(of: vehicle),
    ] { #expect(BrokerClient(name: client.name) == client) }
    for name in [
      "", ":", "rider", "rider:", "operator:", "operator:\(vehicle)", "\(vehicle)", "rider:\(vehicle) ",
      "rider:rider:\(vehicle)", "Rider:\(vehicle)", "rider:\(vehicle.description.uppercased())", "broker",
    ] { #expect(BrokerClient(name: name) == nil, "\(name)") }
  }
}
