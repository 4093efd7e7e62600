import CBluetooth
import Encoding
import Glibc
package import Ranging
import SystemIO

/// A Bluetooth adapter of this machine, with the data that the kernel gives to everyone.
package struct Adapter: Sendable, Equatable {
  /// The number in `hci0`.
  package let number: UInt16
  package let address: DeviceAddress
  package let isUp: Bool
  package let hasLowEnergy: Bool
  package let block: Block?

  /// How rfkill(8) blocks an adapter.
  package enum Block: Sendable, Equatable {
    /// By software, such as an airplane mode.
    case soft
    /// By a switch on the machine.
    case hard
  }

  /// The largest number of adapters in libbluetooth and in the kernel's list (hci.h, HCI_MAX_DEV).
  private static let most: UInt16 = 16

  /// The adapters that the kernel knows, by number; empty if it has no Bluetooth.
  package static func all() -> [Adapter] { (0..<most).compactMap(Adapter.init) }

  private init?(number: UInt16) {
    var information = hci_dev_info()
    guard hci_devinfo(Int32(number), &information) == 0 else { return nil }
    self.number = number
    // Least significant byte first.
    address = withUnsafeBytes(of: information.bdaddr.b) { bytes in
      DeviceAddress(UInt64(littleEndianBytes: bytes))
    }
    isUp = hci_test_bit(Int32(HCI_UP), &information.flags) != 0
    // LE Supported (Controller) is bit 38 (Core 5.4, Vol 2, Part C, 3.3).
    hasLowEnergy = withUnsafeBytes(of: information.features) { $0[38 / 8] >> (38 % 8) & 1 == 1 }
    block = Self.block(of: number)
  }

  /// From sysfs (Linux, Documentation/ABI/stable/sysfs-class-rfkill).
  private static func block(of number: UInt16) -> Block? {
    // An adapter that reappears, for example after sleep, gets a new number here.
    for name in (try? Files.names(in: "/sys/class/rfkill")) ?? [] {
      let folder = "/sys/class/rfkill/\(name)"
      guard content("\(folder)/name") == "hci\(number)" else { continue }
      if content("\(folder)/hard") == "1" { return .hard }
      return content("\(folder)/soft") == "1" ? .soft : nil
    }
    return nil
  }

  private static func content(_ path: String) -> String? {
    guard let bytes = try? Files.read(path) else { return nil }
    return String(decoding: bytes.prefix { $0 != 0x0A }, as: UTF8.self)
  }
}
