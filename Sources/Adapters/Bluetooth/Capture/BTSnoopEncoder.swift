package import Domain
import Encoding
package import Ranging

/// Writes advertisements as a btsnoop file (RFC 1761 with data link type 1002, H4), for `BTSnoopDecoder`, btmon and
/// Wireshark.
///
/// For any radio, an advertisement becomes the event by which a controller would have reported it.
package enum BTSnoopEncoder {
  /// The first 16 bytes of a file.
  package static let fileHeader = BTSnoopDecoder.magic + UInt32(1).bigEndianBytes + UInt32(1002).bigEndianBytes

  /// The largest data of a report (Core 5.4, Vol 4, Part E, 7.7.65.13); longer data is cut.
  private static let maximumData = 229

  /// A record of one report: a legacy one (7.7.65.2) if the data fits, else an extended one (7.7.65.13).
  package static func record(of advertisement: Advertisement) -> [UInt8] {
    let data = advertisement.data.prefix(maximumData)
    let address = (0..<6).map { UInt8(truncatingIfNeeded: advertisement.address.value >> (8 * $0)) }
    // 127: not available.
    let rssi = UInt8(bitPattern: advertisement.rssi ?? 127)
    let type: UInt8 = advertisement.address.isRandom ? 0x01 : 0x00
    let report: [UInt8] =
      if data.count <= 31 {
        // ADV_NONCONN_IND.
        [0x02, 1, 0x03, type] + address + [UInt8(data.count)] + data + [rssi]
      } else {
        // Neither connectable nor scannable, and complete; LE 1M on both channels; no advertising set and no transmit
        // power given; not periodic; directed to nobody.
        [0x0D, 1, 0x00, 0x00, type] + address + [0x01, 0x01, 0xFF, 127, rssi] + [UInt8](repeating: 0, count: 9)
          + [UInt8(data.count)] + data
      }
    return record([0x04, 0x3E, UInt8(report.count)] + report, at: advertisement.time)
  }

  /// A record that only carries a time: Command Complete for no command (7.7.14), which every reader ignores.
  package static func mark(at time: UnixTime) -> [UInt8] { record([0x04, 0x0E, 3, 1, 0x00, 0x00], at: time) }

  private static func record(_ packet: [UInt8], at time: UnixTime) -> [UInt8] {
    let length = UInt32(packet.count)
    // Bit 0: from the controller. Bit 1: a command or an event.
    let flags: UInt32 = 0b11
    let drops: UInt32 = 0
    return [length, length, flags, drops].flatMap(\.bigEndianBytes)
      + (BTSnoopDecoder.epoch &+ time.microseconds).bigEndianBytes + packet
  }
}
