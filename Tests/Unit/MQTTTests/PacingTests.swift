import Testing

@testable import MQTT

@Suite("Pacing") struct PacingTests {
  let broker = Broker(host: "localhost", port: 1883, tls: nil)
  static let chances = [0, 0.1, 0.5, 0.9, 1]

  @Test("a broker that is away is tried again within 1.5 s, however long it has been away", arguments: chances)
  func away(chance: Double) {
    var pacing = Pacing()
    for _ in 0..<100 {
      let wait = pacing.next(after: .lost(broker, .established), lasting: .zero, chance: chance)
      #expect(wait >= .milliseconds(200) && wait <= .milliseconds(1_500))
    }
  }

  @Test("a broker that is away for an hour is not hammered")
  func average() {
    var (pacing, generator, waited, attempts) = (Pacing(), SystemRandomNumberGenerator(), Duration.zero, 0)
    while waited < .seconds(3_600) {
      let chance = Double.random(in: 0...1, using: &generator)
      waited += pacing.next(after: .cannotConnect(broker, code: 111), lasting: .zero, chance: chance)
      attempts += 1
    }
    #expect(attempts < 5_400)
  }

  @Test("one that refuses is asked less and less often, down to every half minute")
  func refusing() {
    var pacing = Pacing()
    var waits: [Duration] = []
    for _ in 0..<8 { waits.append(pacing.next(after: .refusedByAlert(broker, 48), lasting: .zero, chance: 0)) }
    #expect(waits.first == .milliseconds(500) && waits.last == .seconds(30) && waits == waits.sorted())
    #expect(pacing.next(after: .refused(broker, .serverUnavailable), lasting: .zero, chance: 1) <= .milliseconds(1_500))
  }
}

@Suite("Packet meter") struct PacketMeterTests {
  @Test("ends a packet that is too long, and none of those that are not")
  func limit() {
    var meter = PacketMeter(limit: 1000, keepAlive: .seconds(30))
    for _ in 0..<100 {
      meter.received(900)
      meter.packetEnded()
    }
    #expect(!meter.isOverfed)
    meter.received(900)
    meter.received(900)
    #expect(meter.isOverfed)
  }
}
