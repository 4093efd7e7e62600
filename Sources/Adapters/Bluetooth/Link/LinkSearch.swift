import CBluetooth
package import Domain
import Encoding
import Glibc
import Ranging
package import SystemIO

/// Finds a vehicle by its advertisement, and connects to it.
///
/// It hears the vehicle first, ends its own scan, and connects with a limit of its own: `AdapterUse` says why.
package struct LinkSearch {
  /// How long a connection may take to come about.
  private static let patience = Duration.seconds(3)

  private let isMeant: (UUID) -> Bool

  /// - Parameter isMeant: whether a service UUID is the vehicle's.
  package init(isMeant: @escaping (UUID) -> Bool) { self.isMeant = isMeant }

  /// - Parameter end: until when the vehicle may be heard.
  /// - Returns: the channel, and when the vehicle was heard.
  package func connect(
    with spec: RadioSpec, until end: Instant, interruption: Interruption
  ) throws(LinkError) -> (channel: LinkChannel, heard: Instant) {
    guard let adapter = spec.adapter else { throw .noAdapter(spec) }
    var radio: (any Radio)?
    let heard: DeviceAddress?
    do throws(RadioError) {
      if case .bluez = spec {
        heard = try BlueZSearch.find(with: adapter, until: end, interruption, isMeant)
      } else {
        let opened = try spec.open(interruption: interruption)
        (radio, heard) = (opened, try hear(opened, until: end))
      }
    } catch {
      throw .radio(error)
    }
    guard let address = heard else { throw .notHeard }
    let time = Instant.now
    func endScan() { radio?.close() }
    let channel = try AdapterUse.whileConnecting("\(RadioSpec.hci(adapter))", after: endScan) {
      () throws(LinkError) in
      do throws(LinkError) {
        let channel = try LinkChannel.connect(from: adapter, to: address, until: .now + Self.patience, interruption)
        hurry(channel, adapter, interruption)
        return channel
      } catch .noConnection {
        endConnection(to: address, adapter, interruption)
        throw .noConnection
      }
    }
    if case .bluez = spec { channel.atEnd = { BlueZSearch.forget(address, with: adapter) } }
    return (channel, time)
  }

  /// Asks for a turn every 15 ms, where the kernel takes 50, and lets the connection last through 1 s of silence, where
  /// the kernel takes 0.42 s (7.8.18). Where that is refused, the link is slower.
  private func hurry(_ channel: LinkChannel, _ adapter: UInt16, _ interruption: Interruption) {
    guard let handle = channel.handle, let socket = try? HCISocket(adapter: adapter, hears: false) else { return }
    let (interval, latency, limit, length): (UInt16, UInt16, UInt16, UInt16) = (12, 0, 100, 0)
    let parameters = [handle, interval, interval, latency, limit, length, length].flatMap(\.littleEndianBytes)
    _ = try? HCIController(socket).request(
      HCICommand("LE Connection Update", 0x2013, parameters), timeout: .milliseconds(500), endsLater: true,
      interruption)
  }

  /// A connection without a channel would stay for 2 s, and the next attempt would wait for it again.
  private func endConnection(to address: DeviceAddress, _ adapter: UInt16, _ interruption: Interruption) {
    guard let socket = try? HCISocket(adapter: adapter, hears: false),
      let handle = socket.connection(to: address)
    else { return }
    _ = try? HCIController(socket).request(
      .disconnect(handle), timeout: .milliseconds(500), endsLater: true, interruption)
  }

  private func hear(_ radio: any Radio, until end: Instant) throws(RadioError) -> DeviceAddress? {
    let left = Int64(max(.zero, Instant.now.duration(to: end)).inSeconds * 1e6)
    let deadline = UnixTime(microseconds: radio.start.microseconds + left)
    while case .heard(let advertisement) = try radio.next(until: deadline) {
      if let name = CallFrame.read(advertisement.data), isMeant(name) { return advertisement.address }
    }
    return nil
  }
}

extension LinkChannel {
  static func connect(
    from adapter: UInt16, to address: DeviceAddress, until end: Instant, _ interruption: Interruption
  ) throws(LinkError) -> LinkChannel {
    let socket: Descriptor
    do { socket = try bound(to: adapter, nil) } catch { throw .radio(error) }
    var place = bdaddr_t()
    withUnsafeMutableBytes(of: &place) { bytes in
      for index in 0..<6 { bytes[index] = UInt8(truncatingIfNeeded: address.value >> UInt64(8 * index)) }
    }
    let number = socket.number
    do throws(SystemError) {
      try withAddress(place, isRandom: address.isRandom, psm) { address, length throws(SystemError) in
        guard Glibc.connect(number, address, length) == 0 || errno == EINPROGRESS else { throw SystemError("connect") }
      }
    } catch {
      throw LinkError(error.code)
    }
    var entries = [
      pollfd(fd: number, events: Int16(POLLOUT), revents: 0),
      pollfd(fd: interruption.number, events: Int16(POLLIN), revents: 0),
    ]
    repeat {
      let left = Int32(clamping: Int64(max(.zero, Instant.now.duration(to: end)).inSeconds * 1000) + 1)
      guard poll(&entries, 2, left) >= 0 || errno == EINTR else { throw LinkError(errno) }
      if entries[1].revents != 0 { throw .radio(.interrupted) }
      if entries[0].revents != 0 {
        var (code, size) = (Int32(0), socklen_t(4))
        getsockopt(number, SOL_SOCKET, SO_ERROR, &code, &size)
        if code != 0 { throw LinkError(code) }
        return LinkChannel(socket)
      }
    } while end > .now
    throw .noConnection
  }
}
