import Bluetooth
import Domain
import Encoding
import Ranging
import TestSupport
import Testing

/// tshark is another reading of the same specifications, by other people.
@Suite(
  "captures are read as tshark reads them",
  .enabled(if: shell("command -v tshark").status == 0, "tshark is not installed"))
struct TSharkTests {
  /// Time, address, UUID, major, minor, measured power, RSSI.
  typealias Frame = String

  private func frames(_ path: String) throws -> [Frame] {
    let radio = try RadioSpec.btsnoop(path).open()
    var frames: [Frame] = []
    while case .heard(let advertisement) = try radio.next(until: nil) {
      guard let beacon = advertisement.iBeacon else { continue }
      let rssi = advertisement.rssi.map { "\($0)" } ?? "-"
      frames.append(
        "\(advertisement.time.microseconds) \(advertisement.address) \(beacon.uuid) \(beacon.major) \(beacon.minor) "
          + "\(beacon.measuredPower) \(rssi)")
    }
    return frames
  }

  private func framesOfTShark(_ path: String) throws -> [Frame] {
    let fields = ["frame.time_epoch", "bthci_evt.bd_addr", "bthci_evt.rssi", "btcommon.eir_ad.entry.data"]
    let (status, output) = shell(
      "tshark -r '\(path)' -Y 'btcommon.eir_ad.entry.company_id == 0x004c' -T fields -E occurrence=a "
        + fields.map { "-e \($0)" }.joined(separator: " ") + " 2>/dev/null")
    #expect(status == 0)
    return try output.split(separator: "\n").flatMap { line in
      let columns = line.split(separator: "\t", omittingEmptySubsequences: false)
      try #require(columns.count == 4)
      // Seconds with nine decimals.
      let time = columns[0].filter { $0 != "." }.dropLast(3)
      let addresses = columns[1].split(separator: ",")
      let rssis = columns[2].split(separator: ",")
      // Type and length (0x0215), UUID, major, minor, power: 23 bytes in hexadecimal.
      let beacons = columns[3].split(separator: ",").filter { $0.hasPrefix("0215") && $0.utf8.count == 46 }
      return beacons.enumerated().map { index, text in
        let digits = Array(text)
        func hexadecimal(_ range: Range<Int>) -> UInt16 { UInt16(String(digits[range]), radix: 16)! }
        let uuid = [4..<12, 12..<16, 16..<20, 20..<24, 24..<36].map { String(digits[$0]) }.joined(separator: "-")
        let rssi = Int8(rssis[index]).flatMap { $0 < 0 ? "\($0)" : nil } ?? "-"
        return "\(time) \(addresses[index].uppercased()) \(uuid) \(hexadecimal(36..<40)) \(hexadecimal(40..<44)) "
          + "\(Int8(truncatingIfNeeded: hexadecimal(44..<46))) \(rssi)"
      }
    }
  }

  @Test(
    "one frame after the other",
    arguments: [("corners", 16), ("raspberry-pi", 113), ("monitor", 50)])
  func captures(name: String, count: Int) throws {
    let path = Repository.fixture("captures/\(name).btsnoop")
    let frames = try frames(path)
    #expect(try frames == framesOfTShark(path))
    #expect(frames.count == count)
  }
}
