package import Domain
import Encoding
import Ranging
package import SystemIO

/// Offers links on an adapter of this machine: one connectable advertisement every 100 ms, beside the beacons.
///
/// A controller ends such an advertisement when somebody connects, and refuses it while it has no room for one more
/// connection. So it is started again after each connection and each end of one. Everything but this set stays as it
/// is: whoever connects cannot take a beacon off the air.
///
/// A Bluetooth 4 controller has one set, with the adapter's own address. Some of these are silent while somebody is
/// connected.
///
/// **Threads.** One thread creates, uses and closes it.
package final class LinkAdvertiser {
  /// Beacons have the handles before it, calls the one after it.
  private static let handle: UInt8 = 0xE7
  /// How long a connection may be without a channel. bluetoothd would let it stay.
  private static let longestSilence = Duration.seconds(3)
  /// How often everything is looked at.
  private static let pause = Duration.seconds(1)

  private let controller: HCIController
  private let interruption: Interruption?
  private let extended: Bool
  private var isSet = false
  private var isOn = false
  /// What is advertised; nil before the first time.
  private var name: UUID?
  /// When each connection that came here began or last had a channel.
  private var connections: [UInt16: Instant] = [:]

  /// - Parameter adapter: the number in `hci0`.
  package init(adapter: UInt16, interruption: Interruption? = nil) throws(RadioError) {
    controller = try HCIController(HCISocket(adapter: adapter, hears: false, follows: true))
    self.interruption = interruption
    extended = try controller.abilities(interruption).isExtended
    controller.observe = { [unowned self] in note($0) }
  }

  deinit { close() }

  /// Advertises a name for a time; a new name from a new address.
  ///
  /// - Parameters:
  ///   - begun: called when it is on the air.
  ///   - hasChannel: whether a connection, by the kernel's number, has a channel. Others are ended.
  /// - Throws: `RadioError`; after any error except `.interrupted` it is off the air.
  package func advertise(
    _ name: UUID, until end: Instant, begun: () -> Void, hasChannel: (UInt16) -> Bool
  ) throws(RadioError) {
    if name != self.name {
      // The kernel of this machine serves one connection with a device. Whoever has just ended a link would come to the
      // new address with a second one, and wait in vain.
      for connection in connections.keys where !hasChannel(connection) { disconnect(connection) }
      try begin(CallFrame.advertisingData(name))
      self.name = name
    }
    begun()
    var look = Instant.now + Self.pause
    while end > .now {
      _ = try controller.receive(until: min(end, look), interruption)
      if !isOn { try enable() }
      guard look <= .now else { continue }
      look = .now + Self.pause
      // Other programs reset the controller.
      isOn = false
      for (connection, last) in connections {
        if hasChannel(connection) {
          connections[connection] = .now
        } else if last + Self.longestSilence <= .now {
          disconnect(connection)
        }
      }
    }
  }

  /// Takes it off the air, and waits for the controller to confirm that (1 s at most for each command). Idempotent.
  package func close() {
    guard isSet else { return }
    isSet = false
    controller.observe = { _ in }
    stop(timeout: .seconds(1), nil)
  }

  private func disconnect(_ connection: UInt16) {
    _ = try? controller.request(.disconnect(connection), timeout: .seconds(1), endsLater: true, interruption)
  }

  private func begin(_ data: [UInt8]) throws(RadioError) {
    stop(timeout: .seconds(5), interruption)
    // General discoverable, no BR/EDR (Supplement, Part A, 1.3): some systems show nothing without it.
    let data = [2, 0x01, 0x06] + data
    isSet = true
    if extended {
      try controller.request(.setExtendedAdvertisingParameters(set: Self.handle, isConnectable: true), interruption)
      try controller.request(.setRandomAddress(RandomAddress.makeStatic(), set: Self.handle), interruption)
      try controller.request(.setExtendedAdvertisingData(data, set: Self.handle), interruption)
    } else {
      try controller.request(.setAdvertisingParameters(.public, isConnectable: true), interruption)
      try controller.request(.setAdvertisingData(data), interruption)
    }
    try enable()
  }

  private func enable() throws(RadioError) {
    do {
      try controller.request(
        extended ? .setExtendedAdvertisingEnable(true, sets: [Self.handle]) : .setAdvertisingEnable(true), interruption)
      isOn = true
    } catch .refused(_, _, let status) where status != 0x42 {
      // There is no room for a connection. At the next end of one, or look, it is tried again. 0x42: there is no such
      // set, because another program has reset the controller.
    }
  }

  private func note(_ event: [UInt8]) {
    switch event.first {
    // 7.7.5: there is room for a connection again.
    case 0x05 where event.count >= 5:
      connections[UInt16(littleEndianBytes: event[3...4])] = nil
      isOn = false
    // 7.7.65.18: our set has ended with a connection.
    case 0x3E where event.count >= 7 && event[2] == 0x12 && event[4] == Self.handle:
      isOn = false
      if event[3] == 0 { connections[UInt16(littleEndianBytes: event[5...6])] = .now }
    // 7.7.65.1 and 7.7.65.10: a connection to this adapter as the peripheral.
    case 0x3E where !extended && event.count >= 7 && [0x01, 0x0A].contains(event[2]) && event[3] == 0 && event[6] == 1:
      isOn = false
      connections[UInt16(littleEndianBytes: event[4...5])] = .now
    default: break
    }
  }

  private func stop(timeout: Duration, _ interruption: Interruption?) {
    isOn = false
    controller.endAdvertising([Self.handle], extended: extended, timeout: timeout, interruption)
  }
}
