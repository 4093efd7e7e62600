import Domain
import Encoding
import Glibc
import SystemIO
import TestSupport

/// 1970-01-01 as btsnoop counts: microseconds since the year 0.
private let epoch: Int64 = 0x00DC_DDB3_0F2F_8000

/// A btsnoop file of our own making.
struct Capture {
  private(set) var bytes: [UInt8]

  init(version: UInt32 = 1, dataLink: UInt32 = 1002) {
    bytes = Array("btsnoop\0".utf8) + Self.bigEndian(version) + Self.bigEndian(dataLink)
  }

  /// - Parameters:
  ///   - time: microseconds since 1970.
  ///   - original: how long the packet was; nil if it was recorded whole.
  mutating func add(_ packet: [UInt8], at time: Int64, flags: UInt32 = 3, original: UInt32? = nil) {
    bytes += Self.bigEndian(original ?? UInt32(packet.count)) + Self.bigEndian(UInt32(packet.count))
    bytes += Self.bigEndian(flags) + Self.bigEndian(UInt32(0)) + Self.bigEndian(epoch + time) + packet
  }

  private static func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
  }
}

/// A capture in a format that is not read.
enum ForeignFile {
  /// - Parameter packets: of one second.
  static func pcap(_ linkType: UInt16, packets: [[UInt8]] = [], isBigEndian: Bool = false) -> [UInt8] {
    // Magic number, version 2.4, two reserved words, the longest packet.
    let header = bytes([0xA1B2_C3D4], isBigEndian) + half(2, isBigEndian) + half(4, isBigEndian)
    return header + bytes([0, 0, 65535, UInt32(linkType)], isBigEndian)
      + packets.flatMap { bytes([1_767_225_600, 0, UInt32($0.count), UInt32($0.count)], isBigEndian) + $0 }
  }

  /// - Parameters:
  ///   - linkTypes: one for each interface.
  ///   - packets: of the first interface.
  static func pcapng(_ linkTypes: [UInt16], packets: [[UInt8]] = [], isBigEndian: Bool = false) -> [UInt8] {
    func block(_ type: UInt32, _ body: [UInt8]) -> [UInt8] {
      let padded = body + [UInt8](repeating: 0, count: (4 - body.count % 4) % 4)
      let length = UInt32(padded.count + 12)
      return bytes([type, length], isBigEndian) + padded + bytes([length], isBigEndian)
    }
    // Byte-order magic, version 1.0, a section of unknown length.
    let section =
      bytes([0x1A2B_3C4D], isBigEndian) + half(1, isBigEndian) + half(0, isBigEndian)
      + [UInt8](repeating: 255, count: 8)
    let interfaces = linkTypes.map {
      block(1, half($0, isBigEndian) + half(0, isBigEndian) + bytes([65535], isBigEndian))
    }
    let enhanced = packets.map { packet in
      block(6, bytes([0, 0, 0, UInt32(packet.count), UInt32(packet.count)], isBigEndian) + packet)
    }
    return block(0x0A0D_0D0A, section) + interfaces.joined() + enhanced.joined()
  }

  private static func bytes(_ words: [UInt32], _ isBigEndian: Bool) -> [UInt8] {
    words.flatMap { isBigEndian ? $0.bigEndianBytes : $0.littleEndianBytes }
  }

  private static func half(_ value: UInt16, _ isBigEndian: Bool) -> [UInt8] {
    isBigEndian ? value.bigEndianBytes : value.littleEndianBytes
  }
}

/// HCI packets with their H4 packet type in front.
enum Packet {
  /// A legacy report from C0:00:00:00:00:01 at -60 dBm.
  ///
  /// - Parameter behind: how many bytes follow the beacon's measured power.
  static func report(minor: UInt8 = 7, behind: Int = 0) -> [UInt8] { event([report(minor, behind: behind)]) }

  /// Several in one event.
  static func reports(minors: [UInt8]) -> [UInt8] { event(minors.map { report($0) }) }

  /// The beacons of `RadioContract`, in one event.
  static func contract(extended: Bool) -> [UInt8] {
    let beacons: [(minor: UInt8, rssi: UInt8)] = [(1, 0xC4), (2, 0xC4), (3, 127)]
    return extended
      ? event(beacons.map { extendedReport($0.minor, rssi: $0.rssi, from: $0.minor) }, subevent: 0x0D)
      : event(beacons.map { report($0.minor, rssi: $0.rssi, from: $0.minor) })
  }

  /// An extended report of the same.
  static func extendedReport(minor: UInt8 = 7, behind: Int = 0) -> [UInt8] {
    event([extendedReport(minor, behind: behind)], subevent: 0x0D)
  }

  /// Reset, as a host sends it, and the controller's answer.
  static let command: [UInt8] = [0x01, 0x03, 0x0C, 0x00]
  static let answer: [UInt8] = [0x04, 0x0E, 0x04, 0x01, 0x03, 0x0C, 0x00]

  private static func event(_ reports: [[UInt8]], subevent: UInt8 = 0x02) -> [UInt8] {
    let body = [subevent, UInt8(reports.count)] + reports.joined()
    return [0x04, 0x3E, UInt8(body.count)] + body
  }

  private static func extendedReport(
    _ minor: UInt8, rssi: UInt8 = 0xC4, from address: UInt8 = 1, behind: Int = 0
  ) -> [UInt8] {
    let data = beacon(minor, behind: behind)
    return [0x10, 0x00, 0x01, address, 0x00, 0x00, 0x00, 0x00, 0xC0, 0x01, 0x00, 0xFF, 0x7F, rssi]
      + [UInt8](repeating: 0, count: 9) + [UInt8(data.count)] + data
  }

  private static func report(
    _ minor: UInt8, rssi: UInt8 = 0xC4, from address: UInt8 = 1, behind: Int = 0
  ) -> [UInt8] {
    let data = beacon(minor, behind: behind)
    return [0x03, 0x01, address, 0x00, 0x00, 0x00, 0x00, 0xC0, UInt8(data.count)] + data + [rssi]
  }

  private static func beacon(_ minor: UInt8, behind: Int) -> [UInt8] {
    [
      UInt8(0x1A + behind), 0xFF, 0x4C, 0x00, 0x02, 0x15, 0x5F, 0x3C, 0x1C, 0x0E, 0x7A, 0x0B, 0x4F, 0x57, 0x9A, 0x55,
      0x1F, 0x0F, 0x6C,
      0x1B, 0x2A, 0x90, 0x00, 0x01, 0x00, minor, 0xC5,
    ] + [UInt8](repeating: 0x64, count: behind)
  }
}

extension TemporaryFolder {
  /// Writes a capture and returns its path.
  func capture(_ bytes: [UInt8]) throws -> String {
    let path = "\(path)/capture"
    try Descriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600).write(bytes)
    return path
  }
}
