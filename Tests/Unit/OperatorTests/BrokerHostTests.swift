import Operator
import Testing

@Suite("Broker host") struct BrokerHostTests {
  @Test(
    "takes names and addresses",
    arguments: [
      "localhost", "vehicle.local", "a", "xn--bcher-kva.example", "10.0.0.1", "127.0.0.1", "::1", "fe80::1",
      "v6-2.example",
    ])
  func valid(_ text: String) {
    #expect(BrokerHost(text)?.description == text)
  }

  @Test(
    "refuses what is neither, and what would mean something in a certificate's or a broker's configuration",
    arguments: [
      "", " ", "a b", "a,DNS:b", "a\nlistener 1883", "a..b", ".a", "a.", "-a", "a-", "ä.example", "a_b", "10.0.0.256",
      "1.2.3",
      "[::1]", "fe80::1%eth0", "a:8883", "*.example", String(repeating: "a", count: 64),
    ])
  func invalid(_ text: String) {
    #expect(BrokerHost(text) == nil)
  }

  @Test("refuses the addresses that mean any", arguments: ["0.0.0.0", "::", "0::0"])
  func any(_ text: String) {
    #expect(BrokerHost(text) == nil)
  }
}
