import CBluetooth
import Encoding
import Glibc
import Ranging
import SystemIO

/// An adapter of this machine, over the kernel's raw HCI socket (libbluetooth's hci_lib.h).
///
/// The kernel has initialised the controller. All programs with such a socket share the controller.
final class HCISocket: HCILink {
  let name: String
  let needsInitialization = false
  private let adapter: UInt16
  private let socket: Descriptor

  /// How many packets are read before the next wait, which notices a signal.
  private static let packetsPerWait = 16
  private var untilWait = 0
  private(set) var emptied = Instant.now

  /// After this much silence, the kernel is asked whether the adapter is still there. An adapter goes down silently,
  /// for example for a moment when bluetoothd restarts.
  private static let patience = Duration.seconds(5)
  private var lastPacket = Instant.now

  /// HCIGETCONNINFO of hci.h, a macro that Swift does not import: _IOR('H', 213, int).
  private static let getConnectionInformation: UInt = 0x8004_48D5
  /// The type of a Low Energy connection (LE_LINK in the kernel's hci.h).
  private static let lowEnergy: UInt8 = 0x80

  /// - Parameters:
  ///   - adapter: the number in `hci0`.
  ///   - hears: whether to receive reports of advertisements.
  ///   - follows: whether to receive what becomes of connections.
  init(adapter: UInt16, hears: Bool, follows: Bool = false) throws(RadioError) {
    self.adapter = adapter
    name = "hci\(adapter)"
    let number = hci_open_dev(Int32(adapter))
    guard number >= 0 else {
      switch errno {
      case EAFNOSUPPORT: throw .noBluetooth(radio: name)
      case ENODEV: throw .noAdapter(radio: name)
      default: throw .adapter(SystemError("open", name))
      }
    }
    socket = Descriptor(adopting: number)
    try requireUsable()
    try setFilter(hears: hears, follows: follows)
    if hears { makeRoom() }
  }

  /// Makes the socket's buffer as large as possible, because packets that do not fit are lost. 200 beacons fill the
  /// kernel's default buffer (208 KiB, about 250 packets) in an eighth of a second.
  private func makeRoom() {
    var bytes: Int32 = 4 << 20
    let size = socklen_t(MemoryLayout<Int32>.size)
    // More than net.core.rmem_max needs CAP_NET_ADMIN.
    if setsockopt(socket.number, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, size) == -1 {
      _ = setsockopt(socket.number, SOL_SOCKET, SO_RCVBUF, &bytes, size)
    }
  }

  /// Checks that the adapter is there, up, and not used exclusively by another program.
  private func requireUsable() throws(RadioError) {
    var information = hci_dev_info()
    guard hci_devinfo(Int32(adapter), &information) == 0 else {
      throw .lost(radio: name, reason: SystemError("ask").reason)
    }
    guard hci_test_bit(Int32(HCI_UP), &information.flags) != 0 else { throw .adapterDown(radio: name) }
    // While a program uses the adapter exclusively (HCI_CHANNEL_USER), the kernel refuses every request but lets
    // commands through, which collide with that program's. So this asks about a connection that does not exist.
    var request = hci_conn_info_req()
    let number = socket.number
    if ioctl(number, Self.getConnectionInformation, &request) == -1, errno == EBUSY { throw .adapterInUse(radio: name) }
  }

  /// The kernel's number of its Low Energy connection to a device; nil if there is none.
  func connection(to address: DeviceAddress) -> UInt16? {
    // The request, `hci_conn_info_req`: the address, the type of the link, and a byte that aligns the answer.
    // The answer, `hci_conn_info`: the connection's number, and 14 bytes more.
    var buffer = address.value.littleEndianBytes[..<6] + [Self.lowEnergy] + [UInt8](repeating: 0, count: 17)
    let number = socket.number
    let result = buffer.withUnsafeMutableBytes { ioctl(number, Self.getConnectionInformation, $0.baseAddress!) }
    return result == 0 ? UInt16(littleEndianBytes: buffer[8..<10]) : nil
  }

  /// Passes only the packets that this program reads.
  private func setFilter(hears: Bool, follows: Bool) throws(RadioError) {
    var filter = hci_filter()
    hci_filter_clear(&filter)
    hci_filter_set_ptype(HCI_EVENT_PKT, &filter)
    for event in [EVT_CMD_COMPLETE, EVT_CMD_STATUS, EVT_HARDWARE_ERROR] { hci_filter_set_event(event, &filter) }
    if hears || follows { hci_filter_set_event(EVT_LE_META_EVENT, &filter) }
    if follows { hci_filter_set_event(EVT_DISCONN_COMPLETE, &filter) }
    if hears {
      // The kernel shows other programs' commands, which may end the scan.
      hci_filter_set_ptype(HCI_COMMAND_PKT, &filter)
    }
    var size = socklen_t(MemoryLayout<hci_filter>.size)
    let number = socket.number
    do {
      _ = try check("set the event filter of", name) { setsockopt(number, SOL_HCI, HCI_FILTER, &filter, size) }
      // Without CAP_NET_RAW the kernel reports success but drops LE Meta from the filter.
      _ = try check("read the event filter of", name) { getsockopt(number, SOL_HCI, HCI_FILTER, &filter, &size) }
    } catch {
      throw .adapter(error)
    }
    guard !hears && !follows || hci_filter_test_event(EVT_LE_META_EVENT, &filter) != 0 else { throw notPermitted }
  }

  private var notPermitted: RadioError {
    .notPermitted(radio: name, program: Files.target(ofLink: "/proc/self/exe") ?? "")
  }

  var descriptor: Int32 { socket.number }

  func send(_ packet: [UInt8]) throws(RadioError) {
    do {
      try socket.write(packet, name)
    } catch {
      throw failure(error)
    }
  }

  func receive(
    until deadline: Instant?, _ interruption: Interruption?
  ) throws(RadioError) -> HCIPacket? {
    while true {
      if untilWait > 0, let packet = try readPacket() {
        untilWait -= 1
        return packet
      }
      let check = Instant.now + longestWait
      if try waitReadable(socket.number, of: name, until: min(deadline ?? check, check), interruption) {
        untilWait = Self.packetsPerWait
      } else if let silence = try timeOfSilence(socket.number, of: name, interruption) {
        emptied = silence
        if lastPacket.duration(to: silence) > Self.patience { try requireUsable() }
        if let deadline, deadline <= silence { return nil }
      }
    }
  }

  /// Reads one packet: the kernel delivers one at a time.
  ///
  /// - Returns: nil if there is none.
  private func readPacket() throws(RadioError) -> HCIPacket? {
    var packet = [UInt8](repeating: 0, count: 1 + Int(HCI_MAX_EVENT_SIZE))
    let number = socket.number
    let start = Instant.now
    do {
      let count = try check("read", name) { recv(number, &packet, packet.count, Int32(MSG_DONTWAIT)) }
      guard count > 0 else { return nil }
      lastPacket = .now
      return switch Int32(packet[0]) {
      case HCI_EVENT_PKT: .event(Array(packet[1..<count]))
      case HCI_COMMAND_PKT: .command(Array(packet[1..<count]))
      default: nil
      }
    } catch {
      if error.code == EAGAIN {
        emptied = start
        return nil
      }
      throw failure(error)
    }
  }

  private func failure(_ error: SystemError) -> RadioError {
    switch error.code {
    case EPERM, EACCES: notPermitted
    case ENETDOWN: .adapterDown(radio: name)
    case ENODEV, EPIPE, EBADFD, ENXIO: .lost(radio: name, reason: "the adapter was removed")
    default: .adapter(error)
    }
  }
}
