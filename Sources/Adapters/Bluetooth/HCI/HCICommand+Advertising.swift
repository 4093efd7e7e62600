import SystemIO

/// The commands that make a controller send advertisements.
///
/// Beacons are ADV_NONCONN_IND (Core 5.4, Vol 6, Part B, 2.3.1.3) with either kind of command: old receivers hear
/// nothing else, and nobody can connect. A link is offered by ADV_IND (2.3.1.1). Bluetooth 5's commands have one set
/// per beacon; the older commands allow only one beacon.
extension HCICommand {
  /// 100 ms, in units of 625 µs: Apple's requirement for an iBeacon, and the minimum for Bluetooth 4.
  private static let interval: (low: UInt8, high: UInt8) = (160, 0)
  /// Channels 37, 38 and 39.
  private static let everyChannel: UInt8 = 0b111
  private static let nobodyInParticular = [UInt8](repeating: 0, count: 7)
  private static let everyScanner: UInt8 = 0
  /// The largest data of a legacy advertisement (Vol 6, Part B, 2.3.1.3).
  static let maximumAdvertisingData = 31

  /// The sender's address in the advertisements (7.8.5, Own_Address_Type).
  enum OwnAddress: UInt8 {
    case `public` = 0
    case random = 1
  }

  // MARK: - Bluetooth 4

  /// 7.8.4
  static func setRandomAddress(_ address: [UInt8]) -> HCICommand {
    HCICommand("LE Set Random Address", 0x2005, address)
  }

  /// 7.8.5
  static func setAdvertisingParameters(_ own: OwnAddress, isConnectable: Bool = false) -> HCICommand {
    let type: UInt8 = isConnectable ? 0x00 : 0x03
    return HCICommand(
      "LE Set Advertising Parameters", 0x2006,
      [interval.low, interval.high, interval.low, interval.high, type, own.rawValue]
        + nobodyInParticular + [everyChannel, everyScanner])
  }

  /// 7.8.7. Allowed at any time; the next packet has the new data.
  static func setAdvertisingData(_ data: [UInt8]) -> HCICommand {
    let filling = [UInt8](repeating: 0, count: maximumAdvertisingData - data.count)
    return HCICommand("LE Set Advertising Data", 0x2008, [UInt8(data.count)] + data + filling)
  }

  /// 7.8.9
  static func setAdvertisingEnable(_ enable: Bool) -> HCICommand {
    HCICommand("LE Set Advertising Enable", 0x200A, [enable ? 1 : 0])
  }

  // MARK: - Bluetooth 5

  /// 7.8.58
  static let readNumberOfAdvertisingSets = HCICommand("LE Read Number of Supported Advertising Sets", 0x203B)

  /// 7.8.53. Creates the set if it does not exist.
  static func setExtendedAdvertisingParameters(set handle: UInt8, isConnectable: Bool = false) -> HCICommand {
    // Bit 4: legacy PDUs. Bit 0 and bit 1: connectable and scannable.
    let properties: [UInt8] = [isConnectable ? 0x13 : 0x10, 0]
    let oneMegabit: UInt8 = 1
    let anyPower: UInt8 = 0x7F
    let wideInterval: [UInt8] = [interval.low, interval.high, 0]
    let addresses: [UInt8] = [everyChannel, OwnAddress.random.rawValue] + nobodyInParticular
    // Secondary channels, which legacy PDUs do not use; advertising SID 0; no scan request notifications.
    let unused: [UInt8] = [everyScanner, anyPower, oneMegabit, 0, oneMegabit, 0, 0]
    // Swift 6.2 needs too long for the types of a sum that has the literals in it.
    return HCICommand(
      "LE Set Extended Advertising Parameters", 0x2036,
      [handle] + properties + wideInterval + wideInterval + addresses + unused)
  }

  /// 7.8.52
  static func setRandomAddress(_ address: [UInt8], set handle: UInt8) -> HCICommand {
    HCICommand("LE Set Advertising Set Random Address", 0x2035, [handle] + address)
  }

  /// 7.8.54. Complete data, the only kind that is allowed while the set advertises.
  static func setExtendedAdvertisingData(_ data: [UInt8], set handle: UInt8) -> HCICommand {
    let complete: UInt8 = 0x03
    let doNotFragment: UInt8 = 0x01
    return HCICommand(
      "LE Set Extended Advertising Data", 0x2037, [handle, complete, doNotFragment, UInt8(data.count)] + data)
  }

  /// 7.8.56
  ///
  /// - Parameter duration: how long each set advertises, in units of 10 ms; 0 means until it is disabled.
  static func setExtendedAdvertisingEnable(
    _ enable: Bool, sets handles: [UInt8], duration: UInt16 = 0
  ) -> HCICommand {
    let (low, high) = (UInt8(truncatingIfNeeded: duration), UInt8(duration >> 8))
    let anyNumberOfEvents: UInt8 = 0
    return HCICommand(
      "LE Set Extended Advertising Enable", 0x2039,
      [enable ? 1 : 0, UInt8(handles.count)] + handles.flatMap { [$0, low, high, anyNumberOfEvents] })
  }

  /// 7.8.59
  static func removeAdvertisingSet(_ handle: UInt8) -> HCICommand {
    HCICommand("LE Remove Advertising Set", 0x203C, [handle])
  }
}

extension HCIController {
  /// Ends the advertising of these sets, or that of a Bluetooth 4 controller, if it is on; failures are ignored.
  func endAdvertising(
    _ sets: [UInt8], extended: Bool, timeout: Duration, _ interruption: Interruption?
  ) {
    // One by one: if one set does not exist, the whole command is refused. A set must be disabled before it is removed.
    let commands: [HCICommand] =
      extended
      ? sets.flatMap { [.setExtendedAdvertisingEnable(false, sets: [$0]), .removeAdvertisingSet($0)] }
      : [.setAdvertisingEnable(false)]
    for command in commands {
      do { try request(command, timeout: timeout, interruption) } catch .refused {} catch { return }
    }
  }
}

/// Random device addresses: 46 random bits, and two that name the kind (Core 5.4, Vol 6, Part B, 1.3.2).
enum RandomAddress {
  /// A static address (1.3.2.1).
  static func makeStatic() -> [UInt8] { random { $0 | 0xC0 } }

  /// A non-resolvable private address (1.3.2.2).
  static func makeNonResolvable() -> [UInt8] { random { $0 & 0x3F } }

  private static func random(_ mark: (UInt8) -> UInt8) -> [UInt8] {
    var address = (0..<6).map { _ in UInt8.random(in: 0...255) }
    address[5] = mark(address[5])
    return address
  }
}
