package import Ranging
import SystemIO

/// A controller that sends iBeacon frames, each every 100 ms, until it has to stop.
///
/// A Bluetooth 5 controller has an advertising set for each beacon; an older controller can send only one beacon. The
/// commands are of the same kind as those for scanning, extended or legacy: after one kind, a controller refuses the
/// other (Core 5.4, Vol 4, Part E, 3.1.1).
///
/// **An adapter of this machine** is shared with bluetoothd and with every program that has a raw socket. So its sets
/// get handles that other programs are unlikely to use, and no other sets are touched. A Bluetooth 4 controller can
/// advertise for only one program: the last that asked. If something ended the advertising meanwhile (a reset, or
/// bluetoothd), the next `update` starts it again.
///
/// **Threads.** It has no threads. One thread creates, updates and closes it.
package final class Advertiser {
  /// Linux numbers bluetoothd's sets from 1.
  private static let firstHandle: UInt8 = 0xE0
  /// A vehicle has two sides, so a killed program may have left this many sets.
  private static let mostBeacons = 2

  private let controller: HCIController
  private let interruption: Interruption?
  private let extended: Bool
  /// The advertising data of each beacon.
  private var data: [[UInt8]]
  /// Random static addresses, the least significant byte first.
  private let addresses: [[UInt8]]
  private var isOn = false

  private var handles: [UInt8] { data.indices.map { Self.firstHandle + UInt8($0) } }

  init(_ link: any HCILink, _ beacons: [IBeacon], _ interruption: Interruption?) throws(RadioError) {
    precondition((1...Self.mostBeacons).contains(beacons.count), "no number of beacons for a vehicle")
    controller = HCIController(link)
    self.interruption = interruption
    data = beacons.map(\.advertisingData)
    addresses = beacons.map { _ in RandomAddress.makeStatic() }
    let abilities = try controller.abilities(interruption)
    extended = abilities.isExtended
    try abilities.check(beacons.count, radio: controller.name)
    do {
      try begin()
    } catch {
      close()
      throw error
    }
  }

  deinit { close() }

  /// Readable when the controller has sent something: then call `check`. The caller must not read or close it.
  package var descriptor: Int32 { controller.descriptor }

  /// Reads what the controller has sent.
  ///
  /// - Throws: `RadioError` when it is lost.
  package func check() throws(RadioError) {
    while try controller.receive(until: .now, interruption) != nil {}
  }

  /// Gives the beacons new frames, without a pause in between. Only a Bluetooth 4 controller pauses for some
  /// milliseconds.
  ///
  /// Call this now and then even if nothing has changed: it restarts what another program has ended.
  ///
  /// - Parameter beacons: as many as at the start.
  /// - Throws: `RadioError`; after any error except `.interrupted` the beacons may be off the air.
  package func update(_ beacons: [IBeacon]) throws(RadioError) {
    precondition(beacons.count == data.count, "another number of beacons")
    data = beacons.map(\.advertisingData)
    // An old controller's beacon has no handle. After a reset, or if another program uses it, the controller still
    // accepts data, but would send it connectable (7.8.5: ADV_IND is the default), and only every 1.28 s.
    guard extended else { return try begin() }
    do {
      try setData()
    } catch .refused {
      // The set is gone: another program has reset the controller, or removed all sets.
      return try begin()
    }
    do {
      // Some controllers refuse this with 0x0C if the set is already enabled.
      try setEnable(true)
    } catch .refused {}
  }

  /// Takes the beacons off the air, and waits for the controller to confirm it (1 s at most for each command).
  ///
  /// Idempotent; `deinit` does the same. After that, no other method may be called.
  package func close() {
    guard isOn else { return }
    isOn = false
    end(timeout: .seconds(1), nil)
  }

  // MARK: - Commands

  private func begin() throws(RadioError) {
    // A killed program leaves the controller advertising, and then the controller accepts no parameters.
    end(timeout: .seconds(5), interruption)
    if extended {
      for (handle, address) in zip(handles, addresses) {
        try controller.request(.setExtendedAdvertisingParameters(set: handle), interruption)
        try controller.request(.setRandomAddress(address, set: handle), interruption)
      }
    } else if controller.needsInitialization {
      try controller.request(.setRandomAddress(addresses[0]), interruption)
      try controller.request(.setAdvertisingParameters(.random), interruption)
    } else {
      // The random address of a shared controller belongs to the kernel, which scans and connects with it.
      try controller.request(.setAdvertisingParameters(.public), interruption)
    }
    try setData()
    // From here on it may be advertising, even if no answer comes.
    isOn = true
    try setEnable(true)
  }

  private func setData() throws(RadioError) {
    if extended {
      for (handle, data) in zip(handles, data) {
        try controller.request(.setExtendedAdvertisingData(data, set: handle), interruption)
      }
    } else {
      try controller.request(.setAdvertisingData(data[0]), interruption)
    }
  }

  private func setEnable(_ enable: Bool) throws(RadioError) {
    try controller.request(
      extended ? .setExtendedAdvertisingEnable(enable, sets: handles) : .setAdvertisingEnable(enable), interruption)
  }

  /// Ends the advertising of an earlier run, too.
  private func end(timeout: Duration, _ interruption: Interruption?) {
    let sets = (0..<Self.mostBeacons).map { Self.firstHandle + UInt8($0) }
    controller.endAdvertising(sets, extended: extended, timeout: timeout, interruption)
  }
}
