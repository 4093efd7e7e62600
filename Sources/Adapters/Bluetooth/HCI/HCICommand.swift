import Encoding

/// A command for a controller (Core 5.4, Vol 4, Part E, 5.4.1).
struct HCICommand: Hashable, Sendable {
  /// Its name in the specification, for messages.
  let name: String
  /// OGF in the high 6 bits, OCF in the low 10.
  let opcode: UInt16
  let parameters: [UInt8]

  init(_ name: String, _ opcode: UInt16, _ parameters: [UInt8] = []) {
    self.name = name
    self.opcode = opcode
    self.parameters = parameters
  }

  /// The form for H4 and for the kernel's raw socket: packet type, opcode, length, parameters.
  var packet: [UInt8] {
    [0x01] + opcode.littleEndianBytes + [UInt8(parameters.count)] + parameters
  }

  /// Whether a controller scans and reports every frame after this command; nil if the command does not affect that.
  var scan: Bool? { Self.scan(after: packet.dropFirst()) }

  /// The same for the command in a packet, which begins with the opcode.
  static func scan(after packet: ArraySlice<UInt8>) -> Bool? {
    let bytes = Array(packet)
    guard bytes.count >= 3 else { return nil }
    return switch UInt16(littleEndianBytes: bytes.prefix(2)) {
    case reset.opcode: false
    case 0x200C, 0x2042: bytes.count >= 5 && bytes[3] == 1 && bytes[4] == 0
    default: nil
    }
  }

  /// Ends a connection (7.1.6). 0x13: the remote user ended it.
  static func disconnect(_ connection: UInt16) -> HCICommand {
    HCICommand("Disconnect", 0x0406, connection.littleEndianBytes + [0x13])
  }

  /// 7.3.2
  static let reset = HCICommand("Reset", 0x0C03)

  /// 7.3.1. The default after a reset, plus LE Meta (bit 61).
  static let setEventMask = HCICommand("Set Event Mask", 0x0C01, UInt64(0x2000_1FFF_FFFF_FFFF).littleEndianBytes)

  /// 7.4.3
  static let readLocalSupportedFeatures = HCICommand("Read Local Supported Features", 0x1003)

  /// 7.8.3
  static let leReadLocalSupportedFeatures = HCICommand("LE Read Local Supported Features", 0x2003)

  /// 7.8.1. Advertising Report is bit 1, Extended Advertising Report bit 12.
  static func leSetEventMask(extended: Bool) -> HCICommand {
    HCICommand("LE Set Event Mask", 0x2001, UInt64(extended ? 1 << 12 : 1 << 1).littleEndianBytes)
  }

  /// How to scan: 7.8.10 and 7.8.64.
  ///
  /// Passive: a beacon has nothing to add in a scan response. The window is as long as the interval, so that the
  /// receiver is never off: 60 ms (in units of 625 µs) on each of the three channels in turn.
  static func setScanParameters(extended: Bool) -> HCICommand {
    let passive: UInt8 = 0
    let publicAddress: UInt8 = 0
    let everyAdvertiser: UInt8 = 0
    let timing: [UInt8] = [96, 0, 96, 0]
    return extended
      ? HCICommand(
        "LE Set Extended Scan Parameters", 0x2041,
        // Scanning PHYs: bit 0, LE 1M, the one that beacons use.
        [publicAddress, everyAdvertiser, 0x01, passive] + timing)
      : HCICommand("LE Set Scan Parameters", 0x200B, [passive] + timing + [publicAddress, everyAdvertiser])
  }

  /// 7.8.11 and 7.8.65. Reports every frame instead of one per device: otherwise no RSSI series arrives.
  static func setScanEnable(_ enable: Bool, extended: Bool) -> HCICommand {
    let everyFrame: UInt8 = 0
    return extended
      // Duration and period 0: until it is disabled.
      ? HCICommand("LE Set Extended Scan Enable", 0x2042, [enable ? 1 : 0, everyFrame, 0, 0, 0, 0])
      : HCICommand("LE Set Scan Enable", 0x200C, [enable ? 1 : 0, everyFrame])
  }
}
