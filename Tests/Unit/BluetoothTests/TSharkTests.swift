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

@Suite(
  "captures of Wireshark's are converted as the message says",
  .enabled(if: shell("command -v editcap").status == 0, "editcap is not installed"))
struct EditcapTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// The event as each link type has it: behind its packet type, with a direction, or with the monitor's opcode.
  private static let event = Packet.report(minor: 9)
  private static let packets: [UInt16: [UInt8]] = [
    187: event, 201: [0, 0, 0, 1] + event, 254: [0, 0, 0, 3] + event.dropFirst(), 251: event, 256: event, 272: event,
    1: event, 220: event, 255: event, 147: event,
  ]

  /// What a message promises, or nothing.
  private func converter(_ path: String) throws -> Substring? {
    do throws(RadioError) {
      _ = try RadioSpec.btsnoop(path).open()
    } catch {
      guard case .notACapture(_, let reason) = error else { throw error }
      return reason.split(separator: "`").first { $0.hasPrefix("editcap") }
    }
    Issue.record("it is read")
    return nil
  }

  @Test("and in no other case", arguments: packets.keys.sorted())
  func conversion(type: UInt16) throws {
    let packet = try #require(Self.packets[type])
    let converted = "\(folder.path)/converted"
    for file in [ForeignFile.pcap(type, packets: [packet]), ForeignFile.pcapng([type], packets: [packet])] {
      let path = try folder.capture(file)
      guard let converter = try converter(path) else {
        #expect(shell("editcap -F btsnoop \(path) \(converted) 2>&1").status != 0)
        continue
      }
      #expect(shell("\(converter) \(path) \(converted) 2>&1").status == 0)
      let radio = try RadioSpec.btsnoop(converted).open()
      guard case .heard(let advertisement) = try radio.next(until: nil) else {
        Issue.record("nothing is heard")
        continue
      }
      #expect(advertisement.iBeacon?.minor == 9)
    }
  }
}
