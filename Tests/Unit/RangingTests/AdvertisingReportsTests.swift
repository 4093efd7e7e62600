import Ranging
import Testing

@Suite("advertising reports in HCI events")
struct AdvertisingReportsTests {
  struct Report: Equatable {
    var address = DeviceAddress(0xC605_0403_0201, isRandom: true)
    var rssi: Int8? = -60
    var data: [UInt8] = [0x02, 0x01, 0x06]
  }

  private static let addressBytes: [UInt8] = [0x01, 0x02, 0x03, 0x04, 0x05, 0xC6]

  private static func legacy(rssi: UInt8 = 0xC4, _ data: [UInt8] = [0x02, 0x01, 0x06]) -> [UInt8] {
    [0x03, 0x01] + addressBytes + [UInt8(data.count)] + data + [rssi]
  }

  private static func extended(
    type: UInt16 = 0x0010, set: UInt8 = 0xFF, rssi: UInt8 = 0xC4, _ data: [UInt8] = [0x02, 0x01, 0x06]
  ) -> [UInt8] {
    let kind = [UInt8(type & 0xFF), UInt8(type >> 8), 0x01]
    let details: [UInt8] = [0x01, 0x00, set, 0x7F, rssi, 0x00, 0x00, 0, 0, 0, 0, 0, 0, 0, UInt8(data.count)]
    return kind + addressBytes + details + data
  }

  private static func event(_ subevent: UInt8, _ reports: [[UInt8]], count: Int? = nil) -> [UInt8] {
    let body = [subevent, UInt8(count ?? reports.count)] + reports.joined()
    return [0x3E, UInt8(body.count)] + body
  }

  private func read(
    _ event: [UInt8], with reports: inout AdvertisingReports
  ) -> (outcome: AdvertisingReports.Outcome, reports: [Report]) {
    var found: [Report] = []
    let outcome = reports.read(event: event.span) { address, rssi, data in
      found.append(Report(address: address, rssi: rssi, data: data.withUnsafeBufferPointer { Array($0) }))
    }
    return (outcome, found)
  }

  private func read(_ event: [UInt8]) -> (outcome: AdvertisingReports.Outcome, reports: [Report]) {
    var reports = AdvertisingReports()
    return read(event, with: &reports)
  }

  @Test("are read from exact bytes, legacy")
  func exactLegacy() {
    // LE Meta, 15 bytes, LE Advertising Report, 1 report: ADV_NONCONN_IND, random address, 3 bytes, -60 dBm.
    let (outcome, reports) = read([
      0x3E, 0x0F, 0x02, 0x01, 0x03, 0x01, 0x01, 0x02, 0x03, 0x04, 0x05, 0xC6, 0x03, 0x02, 0x01, 0x06, 0xC4,
    ])
    #expect(outcome == .whole)
    #expect(reports == [Report()])
  }

  @Test("tell a manufacturer's address from a random one that has the same bits")
  func addressTypes() {
    for (type, isRandom) in [(0, false), (1, true), (2, false), (3, true)] as [(UInt8, Bool)] {
      let expected = Report(address: DeviceAddress(0xC605_0403_0201, isRandom: isRandom))
      var (legacy, extended) = (Self.legacy(), Self.extended())
      (legacy[0], legacy[1], extended[2]) = (0x03, type, type)
      #expect(read(Self.event(0x02, [legacy])).reports == [expected])
      #expect(read(Self.event(0x0D, [extended])).reports == [expected])
    }
  }

  @Test("are read from exact bytes, extended, from an old advertiser and from a new one")
  func exactExtended() {
    for type: UInt8 in [0x10, 0x00] {
      let (outcome, reports) = read([
        0x3E, 0x1D, 0x0D, 0x01, type, 0x00, 0x01, 0x01, 0x02, 0x03, 0x04, 0x05, 0xC6, 0x01, 0x00, 0xFF, 0x7F, 0xC4,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x02, 0x01, 0x06,
      ])
      #expect(outcome == .whole)
      #expect(reports == [Report()])
    }
  }

  @Test("are all read when an event carries several")
  func several() {
    let data: [[UInt8]] = [[], [0x02, 0x01, 0x06], [UInt8](repeating: 0, count: 31)]
    let expected = data.map { Report(data: $0) }
    #expect(read(Self.event(0x02, data.map { Self.legacy($0) })) == (.whole, expected))
    #expect(read(Self.event(0x0D, data.map { Self.extended($0) })) == (.whole, expected))
  }

  @Test(
    "have no RSSI where the controller had none, and where it cannot be",
    arguments: [
      (0x7F, nil), (0x00, nil), (0x14, nil), (0x80, nil), (0x81, -127), (0xFF, -1),
    ] as [(UInt8, Int8?)])
  func rssi(byte: UInt8, rssi: Int8?) {
    #expect(read(Self.event(0x02, [Self.legacy(rssi: byte)])).reports == [Report(rssi: rssi)])
    #expect(read(Self.event(0x0D, [Self.extended(rssi: byte)])).reports == [Report(rssi: rssi)])
  }

  @Test("are not in other events")
  func unrelated() {
    #expect(read([]) == (.unrelated, []))
    #expect(read([0x3E, 0x01, 0x02]) == (.unrelated, []))
    #expect(read([0x0E, 0x04, 0x01, 0x0C, 0x20, 0x00]) == (.unrelated, []))
    // LE Directed Advertising Report: no data.
    #expect(read(Self.event(0x0B, [[UInt8](repeating: 0, count: 16)])) == (.unrelated, []))
  }

  @Test("are read up to the one that is cut, wherever that is")
  func cut() {
    for (subevent, report) in [(UInt8(0x02), Self.legacy()), (0x0D, Self.extended())] {
      let whole = Self.event(subevent, [report, report])
      for count in 4..<whole.count {
        let (outcome, reports) = read(Array(whole.prefix(count)))
        #expect(outcome == .torn, "\(count) bytes")
        #expect(reports == Array(repeating: Report(), count: (count - 4) / report.count), "\(count) bytes")
      }
    }
  }

  @Test("that lie about their number or length leave no doubt that the event is torn")
  func lies() {
    #expect(read(Self.event(0x02, [Self.legacy()], count: 2)) == (.torn, [Report()]))
    #expect(read(Self.event(0x02, [Self.legacy(), Self.legacy()], count: 1)) == (.torn, [Report()]))
    #expect(read(Self.event(0x02, [], count: 0)) == (.torn, []))
    #expect(read(Self.event(0x0D, [Self.extended() + [0x00]])) == (.torn, [Report()]))
    // The event's own length is less than what came, and more.
    var event = Self.event(0x02, [Self.legacy()])
    event[1] -= 1
    #expect(read(event) == (.torn, []))
    event[1] += 2
    #expect(read(event) == (.torn, [Report()]))
    // An old advertiser has at most 31 bytes to say.
    #expect(read(Self.event(0x02, [Self.legacy([UInt8](repeating: 0, count: 32))])) == (.torn, []))
  }

  @Test("of an advertisement in fragments are skipped from the first to the last")
  func fragments() {
    var state = AdvertisingReports()
    let complete: UInt16 = 0x00
    let moreToCome: UInt16 = 0x20
    let truncated: UInt16 = 0x40
    func hears(_ type: UInt16, set: UInt8 = 1) -> Bool {
      !read(Self.event(0x0D, [Self.extended(type: type, set: set)]), with: &state).reports.isEmpty
    }
    #expect(!hears(moreToCome))
    #expect(!hears(moreToCome))
    // Another advertising set of the same device, and an old advertisement of it, are whole.
    #expect(hears(complete, set: 2))
    #expect(hears(0x10, set: 0xFF))
    #expect(!hears(complete))
    #expect(hears(complete))
    // What the controller could not hear to the end.
    #expect(!hears(moreToCome))
    #expect(!hears(truncated))
    #expect(hears(complete))
    // The beginning of one that it never reported any more of.
    #expect(hears(truncated))
  }

  @Test("of advertisers that never finish do not fill the memory")
  func unfinished() {
    var state = AdvertisingReports()
    for address in 0..<UInt16(1000) {
      var report = Self.extended(type: 0x20)
      report[3] = UInt8(address & 0xFF)
      report[4] = UInt8(address >> 8)
      #expect(read(Self.event(0x0D, [report]), with: &state).reports.isEmpty)
    }
    #expect(read(Self.event(0x0D, [Self.extended()]), with: &state) == (.whole, [Report()]))
    // Nor do they keep a newer one from being skipped to its end.
    let fragments = [Self.extended(type: 0x20), Self.extended(type: 0x00)]
    #expect(read(Self.event(0x0D, fragments), with: &state).reports.isEmpty)
  }
}
