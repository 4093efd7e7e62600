import Domain
import Ranging
import SystemIO

/// An adapter that scans through bluetoothd, without any privilege (BlueZ's doc/adapter-api.txt, device-api.txt).
///
/// bluetoothd lets the controller report each device once in a scan (5.66: once in 10 s), even if all duplicates are
/// requested. When the filter changes, bluetoothd restarts the scan, and each device is reported once more. So this
/// program alternates a part of the filter that excludes nothing. That gives two readings per second instead of one in
/// ten seconds.
///
/// `AdvertisementMonitor1` would not be better: it is experimental (`bluetoothd -E`), and reports an RSSI only if it
/// differs from the last by 8 dB or more.
final class BlueZRadio: Radio {
  private let adapter: BlueZAdapter
  private let clock: LiveClock
  var start: UnixTime { clock.start }
  /// bluetoothd's unique name on the bus: anyone may send us a signal.
  private var daemon = ""
  private var isOpen = false
  /// Whether the scan is interrupted because this program connects: bluetoothd's scan would hide the other device.
  private var isResting = false
  private var heard = HeardQueue()

  /// How long a scan lasts. Each scan gives one reading.
  private static let period = Duration.milliseconds(500)
  /// How often to look whether this program connects with the adapter.
  private static let look = Duration.milliseconds(100)
  private var nextPeriod = Instant.now
  /// Devices below this level, dBm, are not reported. No receiver reaches either of the two values.
  private var threshold: Int16 = -127

  private static let properties = "org.freedesktop.DBus.Properties"

  /// - Parameter number: the number in `bluez:hci0`.
  init(adapter number: UInt16, _ interruption: Interruption?) throws(RadioError) {
    adapter = try BlueZAdapter(number, interruption)
    clock = LiveClock()
    try adapter.watch("path_namespace='\(adapter.path)',interface='\(Self.properties)',member='PropertiesChanged'")
    try adapter.watch("interface='\(BlueZAdapter.objectManager)',member='InterfacesAdded'")
    do {
      try scan()
    } catch {
      close()
      throw error
    }
  }

  deinit { close() }

  func next(until deadline: UnixTime?) throws(RadioError) -> RadioEvent {
    let end = deadline.map(clock.instant)
    while true {
      if let first = heard.first {
        // It was already in the socket, but it was heard after this deadline.
        if let deadline, first.time > deadline { return .deadline(first.time) }
        _ = heard.popFirst()
        return .heard(first)
      }
      if AdapterUse.isConnecting(adapter.kernelName) {
        rest()
      } else if isResting || nextPeriod <= .now {
        try scan()
      }
      let look = isResting ? .now + Self.look : min(nextPeriod, .now + Self.look)
      if let message = try adapter.receive(until: min(end ?? look, look)) { read(message) }
      // Applies also while useless messages keep coming.
      if let end, end <= .now, heard.first == nil { return .deadline(clock.now) }
    }
  }

  func close() {
    guard isOpen else { return }
    isOpen = false
    adapter.endDiscovery()
  }

  // MARK: - Asking

  private func rest() {
    guard !isResting else { return }
    isResting = true
    adapter.endDiscovery()
  }

  /// Starts or restarts a scan. This also shows what happened to bluetoothd or to the adapter.
  private func scan() throws(RadioError) {
    do {
      try begin()
    } catch .noBluetoothDaemon where isOpen {
      throw .lost(radio: adapter.name, reason: "bluetoothd stopped")
    } catch .noAdapter where isOpen {
      throw .lost(radio: adapter.name, reason: "the adapter was removed")
    }
  }

  private func begin() throws(RadioError) {
    nextPeriod = .now + Self.period
    isResting = false
    threshold = threshold == -127 ? -126 : -127
    daemon = try adapter.discover([
      ("DuplicateData", { message in message.append("v", of: "b") { message.append(true) } }),
      ("RSSI", { [threshold] message in message.append("v", of: "n") { message.append(threshold) } }),
    ])
    isOpen = true
  }

  // MARK: - Hearing

  private func read(_ signal: BusMessage) {
    guard signal.sender == daemon else { return }
    // A signal of another form is ignored.
    _ = try? { () throws(BusMessage.Malformed) in
      if signal.isSignal(Self.properties, "PropertiesChanged") {
        guard try signal.string() == BlueZAdapter.device else { return }
        try add(DeviceProperties(reading: signal), of: signal.path)
      } else if signal.isSignal(BlueZAdapter.objectManager, "InterfacesAdded") {
        let path = try signal.string("o")
        try signal.entries("sa{sv}") { () throws(BusMessage.Malformed) in
          guard try signal.string() == BlueZAdapter.device else { return try signal.skip("a{sv}") }
          try add(DeviceProperties(reading: signal), of: path)
        }
      }
    }()
  }

  /// A report from the controller has both values. If one is missing, the other did not come from a report. Such a
  /// signal does not tell the address's type: nearly all beacons' are random.
  private func add(_ properties: DeviceProperties, of device: String) {
    guard device.hasPrefix("\(adapter.path)/dev_"), let address = DeviceAddress(path: device, isRandom: true),
      let rssi = properties.rssi, let data = properties.advertisingData
    else { return }
    let time = clock.time(timeOfHearing(.now, emptied: adapter.emptied))
    heard.add(Advertisement(time: time, address: address, rssi: rssi, data: data))
  }
}

extension DeviceAddress {
  /// From the path of a device: `/org/bluez/hci0/dev_C0_00_00_00_00_01`.
  init?(path: String, isRandom: Bool) {
    let digits = path.suffix(17).split(separator: "_", omittingEmptySubsequences: false)
    guard digits.count == 6, digits.allSatisfy({ $0.count == 2 }), let value = UInt64(digits.joined(), radix: 16) else {
      return nil
    }
    self.init(value, isRandom: isRandom)
  }
}
