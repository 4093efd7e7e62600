import Domain
import Ranging
import Terminal
import Testing

@testable import CommandParts
@testable import RiderCommands

@Suite("Table of scan") struct ViewScanTests {
  private static let uuid = Domain.UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!

  private func frame(
    major: UInt16, minor: UInt16 = 7, rssi: Int8? = -50, address: UInt64 = 1, at time: Double = 0
  ) -> Advertisement {
    let beacon = IBeacon(uuid: Self.uuid, major: major, minor: minor, measuredPower: -59)
    return Advertisement(
      time: UnixTime(microseconds: Int64(time * 1e6)), address: DeviceAddress(address), rssi: rssi,
      data: beacon.advertisingData)
  }

  /// Ten frames a second, from one time to another.
  private func hear(
    _ table: inout ScanTable, major: UInt16, rssi: Int8?, from begin: Int = 0, to end: Int, address: UInt64 = 1
  ) {
    for tick in (begin * 10)..<(end * 10) {
      let time = Double(tick) / 10
      table.hear(frame(major: major, rssi: rssi, address: address, at: time), at: time)
    }
  }

  private func draw(_ table: inout ScanTable, at time: Double, rows: Int, columns: Int, _ glyphs: Glyphs = .unicode)
    -> [String]
  {
    let beacons = table.rows(at: time)
    return ScanFrame(
      table, rows: beacons, at: time, radio: "hci0", size: Screen.Size(rows: rows, columns: columns), glyphs: glyphs,
      style: { text, style in style == .dim ? "<\(text)>" : text }
    ).lines
  }

  @Test("shows each beacon with its zone, its signal and its rate")
  func table() {
    var table = ScanTable()
    hear(&table, major: 2, rssi: -80, to: 9)
    hear(&table, major: 1, rssi: -50, to: 9)
    #expect(
      draw(&table, at: 9, rows: 24, columns: 80).joined(separator: "\n") == """
         2 beacons  20 frames/s  hci0                                             <9.0 s>

         <beacon     major  minor  zone           RSSI  last 10 s   a second       heard>
         5f3c1c0e…      1      7  immediate   -50 dBm  ▇▇▇▇▇▇▇▇▇       10.0   0.1 s ago
         5f3c1c0e…      2      7  far         -80 dBm  ▃▃▃▃▃▃▃▃▃       10.0   0.1 s ago
        """)
  }

  @Test("fills any size with whole lines, and nothing beyond", arguments: [1, 2, 5, 24], [1, 3, 20, 44, 80, 200])
  func sizes(rows: Int, columns: Int) {
    var table = ScanTable()
    for major in 1...30 as ClosedRange<UInt16> { hear(&table, major: major, rssi: -70, to: 2) }
    for glyphs in [Glyphs.unicode, .ascii] {
      let beacons = table.rows(at: 2)
      let lines = ScanFrame(
        table, rows: beacons, at: 2, radio: "hci0", size: Screen.Size(rows: rows, columns: columns), glyphs: glyphs,
        style: { text, _ in text }
      ).lines
      #expect(lines.count <= rows)
      #expect(lines.allSatisfy { $0.columns <= max(1, columns - 1) }, "\(lines)")
    }
  }

  @Test("says how many more there are than lines")
  func tooMany() {
    var table = ScanTable()
    for major in 1...30 as ClosedRange<UInt16> { hear(&table, major: major, rssi: -70, to: 2) }
    let lines = draw(&table, at: 2, rows: 10, columns: 80)
    #expect(lines.count == 9)
    #expect(lines.last == " <… and 25 more>")
  }

  @Test("says when nothing is heard, and when nothing of it is a beacon")
  func nothing() {
    var table = ScanTable()
    #expect(draw(&table, at: 0, rows: 24, columns: 80).last == " <nothing is heard>")
    table.hear(Advertisement(time: UnixTime(microseconds: 0), address: DeviceAddress(1), rssi: -50, data: []), at: 0)
    #expect(draw(&table, at: 1, rows: 24, columns: 80).last == " <1 advertisements, none from a beacon>")
  }

  @Test("lets a beacon that is gone fade, and then leave")
  func gone() {
    var table = ScanTable()
    hear(&table, major: 1, rssi: -50, to: 2)
    hear(&table, major: 2, rssi: -50, to: 40)
    #expect(table.rows(at: 6).map(\.isHeard) == [true, true])
    #expect(table.rows(at: 7).map(\.isHeard) == [false, true])
    #expect(draw(&table, at: 7, rows: 24, columns: 80)[3].hasPrefix(" <5f3c1c0e…      1"))
    #expect(table.rows(at: 32).map(\.beacon.major) == [2])
  }

  @Test("keeps the order, whoever is stronger at the moment")
  func order() {
    var table = ScanTable()
    for (time, levels) in [(0.0, [-50, -80]), (0.5, [-90, -40])] as [(Double, [Int8])] {
      for major in [2, 1] as [UInt16] {
        table.hear(frame(major: major, rssi: levels[Int(major) - 1], address: UInt64(major), at: time), at: time)
      }
      #expect(table.rows(at: time).map(\.beacon.major) == [1, 2])
    }
  }

  @Test("takes a beacon whose minor changes for the same, and one of another address and minor for another")
  func rotating() {
    var table = ScanTable()
    table.hear(frame(major: 1, minor: 10, address: 1), at: 0)
    table.hear(frame(major: 1, minor: 20, address: 1), at: 1)
    #expect(table.rows(at: 1).map(\.beacon.minor) == [20])
    // It has changed its address.
    table.hear(frame(major: 1, minor: 20, address: 2), at: 2)
    #expect(table.rows(at: 2).count == 1)
    table.hear(frame(major: 1, minor: 30, address: 3), at: 3)
    #expect(table.rows(at: 3).map(\.beacon.minor) == [20, 30])
  }

  @Test("does not grow with whoever makes up beacons")
  func flood() {
    var table = ScanTable()
    for major in 0..<3000 as Range<UInt16> {
      table.hear(frame(major: major, address: UInt64(major)), at: Double(major) / 1000)
    }
    #expect(table.rows(at: 3).count == ScanTable.most)
    #expect(table.rows(at: 3).last?.beacon.major == 2999)
  }

  @Test("counts frames whose RSSI is not available, and shows no level for them")
  func noRSSI() {
    var table = ScanTable()
    hear(&table, major: 1, rssi: nil, to: 4)
    let row = table.rows(at: 4)[0]
    #expect(row.rssi == nil && row.zone == .unknown)
    #expect(row.history.rate(at: 4) == 10)
    #expect(row.history.levels(8, at: 4).allSatisfy { $0 == nil })
  }

  @Test("measures the rate over whole seconds, from the first that there is")
  func rate() {
    var history = SignalHistory()
    for tick in 0..<5 { history.hear(rssi: -50, at: 100.5 + Double(tick) / 10) }
    #expect(history.rate(at: 100.95) == 5)
    for tick in 0..<100 { history.hear(rssi: -60, at: 101 + Double(tick) / 10) }
    #expect(history.rate(at: 111) == 10)
    #expect(history.rate(at: 113) == 6)
    // The second that a beacon appears in is not counted with the next as one.
    var late = SignalHistory()
    for tick in 0..<20 {
      late.hear(rssi: -50, at: 200.05 + Double(tick) / 10)
      #expect((0...11).contains(late.rate(at: 200.05 + Double(tick) / 10)), "\(tick)")
    }
    #expect(history.rate(at: 120) == 0)
    #expect(history.levels(4, at: 111) == [-60, -60, -60, nil])
    // Older than what is kept.
    #expect(history.levels(64, at: 300).allSatisfy { $0 == nil })
  }
}
