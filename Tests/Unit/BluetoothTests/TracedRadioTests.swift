import Domain
import Glibc
import Ranging
import SystemIO
import TestSupport
import Testing

@testable import Bluetooth

@Suite("What is shown of a radio")
struct TracedRadioTests {
  private final class Script: Radio {
    let start = UnixTime(microseconds: 0)
    private var events: ArraySlice<RadioEvent>

    init(_ events: [RadioEvent]) { self.events = events[...] }

    func next(until deadline: UnixTime?) throws(RadioError) -> RadioEvent {
      guard let event = events.popFirst() else { throw .interrupted }
      return event
    }

    func close() {}
  }

  private static let uuid = UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!

  private func frame(at second: Double, isBeacon: Bool) -> RadioEvent {
    let beacon = IBeacon(uuid: Self.uuid, major: 1, minor: 1, measuredPower: -59)
    return .heard(
      Advertisement(
        time: UnixTime(microseconds: Int64(second * 1e6)), address: DeviceAddress(0xC605_0403_0201, isRandom: true),
        rssi: -60,
        data: isBeacon ? beacon.advertisingData : [0x02, 0x01, 0x06]))
  }

  private func lines(_ events: [RadioEvent]) -> [String] {
    var lines: [String] = []
    let radio = TracedRadio(Script(events), named: "hci0") { lines.append($0) }
    while (try? radio.next(until: nil)) != nil {}
    radio.close()
    return lines
  }

  @Test("each advertisement is a line: sender, level and bytes")
  func line() {
    #expect(lines([frame(at: 0, isBeacon: false)]) == ["< hci0 C6:05:04:03:02:01 -60 dBm 020106"])
  }

  @Test("a flood is bounded in each second, its size is told, and it does not crowd out the beacons")
  func flood() {
    let second = (0..<5000).map { frame(at: Double($0) / 5000, isBeacon: false) }
    let told = lines(second + [frame(at: 0.9999, isBeacon: true), frame(at: 1.5, isBeacon: false)])
    #expect(told.count == TracedRadio.mostPerSecond + 3)
    #expect(told[TracedRadio.mostPerSecond].contains("FF4C00"))
    #expect(told[TracedRadio.mostPerSecond + 1] == "< hci0 4990 more in that second")
  }
}
