import CBluetooth
import Glibc
import SystemIO

/// A stream of bytes to another device: an LE credit-based channel (Core 5.4, Vol 3, Part A, 10.1), without pairing.
///
/// **Threads.** One thread uses it. No method waits.
package final class LinkChannel {
  /// The vehicle's LE_PSM, of the dynamic range (Vol 3, Part A, 4.22).
  static let psm: UInt16 = 0xB5
  /// The longest SDU that is sent, bytes. Where the controller takes 27 bytes at a time, the kernel needs a whole
  /// buffer for each of them, and refuses long SDUs for ever.
  private static let longest = 1024
  /// The longest SDU that is received, bytes. From it the kernel computes how much the other device may send ahead:
  /// more than the longest frame.
  private static let receivable = 9216
  /// How much may wait for the other device, bytes.
  private static let mostWaiting = 16_384
  /// How long to wait before `isSent` is asked again.
  package static let pause = Duration.milliseconds(10)

  private let socket: Descriptor
  /// The longest SDU that the other device takes; nil until it is asked for.
  private var sendable: Int?
  private var waiting: [UInt8] = []
  /// Called when the channel is no longer used.
  var atEnd: () -> Void = {}

  init(_ socket: consuming Descriptor) { self.socket = socket }

  deinit { atEnd() }

  /// Readable when something has come, or the channel has ended. The caller must not read or close it.
  package var descriptor: Int32 { socket.number }

  /// The kernel's number of the connection below the channel; nil when that has ended.
  package var handle: UInt16? {
    var information = l2cap_conninfo()
    var size = socklen_t(MemoryLayout<l2cap_conninfo>.size)
    guard getsockopt(socket.number, SOL_L2CAP, L2CAP_CONNINFO, &information, &size) == 0 else { return nil }
    return information.hci_handle
  }

  /// Reads what has come.
  ///
  /// - Returns: nothing if nothing has come.
  /// - Throws: when the channel has ended.
  package func read() throws(LinkError) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: Self.receivable)
    let count = recv(socket.number, &buffer, buffer.count, Int32(MSG_DONTWAIT))
    if count > 0 { return Array(buffer[..<count]) }
    if count < 0, errno == EAGAIN || errno == EINTR { return [] }
    throw count == 0 ? .ended : LinkError(errno)
  }

  /// Sends bytes, after those that wait. The kernel takes none while the other device has given no credits, and this
  /// descriptor does not become readable then: see `isSent`.
  ///
  /// - Throws: when the channel has ended, or the other device has not taken what was sent before.
  package func write(_ bytes: [UInt8]) throws(LinkError) {
    guard waiting.count <= Self.mostWaiting else { throw .stuck }
    waiting += bytes
    _ = try isSent()
  }

  /// Tries again to send what waits.
  ///
  /// - Returns: whether nothing waits any more; if something does, call this every `pause`.
  package func isSent() throws(LinkError) -> Bool {
    if waiting.isEmpty { return true }
    if sendable == nil {
      var size: (value: UInt16, length: socklen_t) = (0, 2)
      guard getsockopt(socket.number, SOL_BLUETOOTH, BT_SNDMTU, &size.value, &size.length) == 0, size.value > 0 else {
        throw LinkError(errno)
      }
      sendable = min(Int(size.value), Self.longest)
    }
    while !waiting.isEmpty {
      let part = Array(waiting.prefix(sendable ?? Self.longest))
      guard send(socket.number, part, part.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL)) == part.count else {
        if errno == EAGAIN || errno == EINTR { return false }
        throw LinkError(errno)
      }
      waiting.removeFirst(part.count)
    }
    return true
  }

  /// A socket of an adapter of this machine that is bound to no PSM, or to the vehicle's.
  static func bound(to adapter: UInt16, _ psm: UInt16?) throws(RadioError) -> Descriptor {
    let name = "hci\(adapter)"
    let number = Glibc.socket(
      AF_BLUETOOTH, Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), BTPROTO_L2CAP)
    guard number >= 0 else {
      throw errno == EAFNOSUPPORT ? .noBluetooth(radio: name) : .adapter(SystemError("open", name))
    }
    let socket = Descriptor(adopting: number)
    var information = hci_dev_info()
    guard hci_devinfo(Int32(adapter), &information) == 0 else { throw .noAdapter(radio: name) }
    guard hci_test_bit(Int32(HCI_UP), &information.flags) != 0 else { throw .adapterDown(radio: name) }
    var (size, room) = (UInt16(receivable), Int32(1 << 20))
    _ = setsockopt(number, SOL_SOCKET, SO_SNDBUF, &room, 4)
    do throws(SystemError) {
      try withAddress(information.bdaddr, isRandom: false, psm ?? 0) { address, length throws(SystemError) in
        _ = try check("listen with", name) { bind(number, address, length) }
      }
      _ = try check("listen with", name) { setsockopt(number, SOL_BLUETOOTH, BT_RCVMTU, &size, 2) }
    } catch {
      throw .adapter(error)
    }
    return socket
  }

  static func withAddress<Result>(
    _ address: bdaddr_t, isRandom: Bool, _ psm: UInt16,
    _ body: (UnsafePointer<sockaddr>, socklen_t) throws(SystemError) -> Result
  ) throws(SystemError) -> Result {
    var place = sockaddr_l2()
    place.l2_family = sa_family_t(AF_BLUETOOTH)
    place.l2_psm = psm.littleEndian
    place.l2_bdaddr = address
    place.l2_bdaddr_type = UInt8(isRandom ? BDADDR_LE_RANDOM : BDADDR_LE_PUBLIC)
    return try withUnsafePointer(to: &place) { place throws(SystemError) in
      try UnsafeRawPointer(place).withMemoryRebound(to: sockaddr.self, capacity: 1) { address throws(SystemError) in
        try body(address, socklen_t(MemoryLayout<sockaddr_l2>.size))
      }
    }
  }
}

/// Takes links, on an adapter of this machine.
package final class LinkAcceptor {
  private let socket: Descriptor

  /// - Parameter adapter: the number in `hci0`. It must be up. Afterwards it may go and come back.
  package init(adapter: UInt16) throws(RadioError) {
    socket = try LinkChannel.bound(to: adapter, LinkChannel.psm)
    guard listen(socket.number, 8) == 0 else { throw .adapter(SystemError("listen with", "hci\(adapter)")) }
  }

  /// Throws if no links could be taken. The PSM may be in use, by stepd itself.
  package static func check(adapter: UInt16) throws(RadioError) {
    _ = try LinkChannel.bound(to: adapter, nil)
  }

  /// Readable when there is a link to take. The caller must not read or close it.
  package var descriptor: Int32 { socket.number }

  /// - Returns: nil if there is none.
  package func next() -> LinkChannel? {
    let number = accept(socket.number, nil, nil)
    guard number >= 0 else { return nil }
    _ = fcntl(number, F_SETFD, FD_CLOEXEC)
    return LinkChannel(Descriptor(adopting: number))
  }
}
