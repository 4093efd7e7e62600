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
  private let name: String
  private let path: String
  private let bus: SystemBus
  private let clock: LiveClock
  var start: UnixTime { clock.start }
  /// bluetoothd's unique name on the bus: anyone may send us a signal.
  private var daemon = ""
  private var isOpen = false
  private var heard = HeardQueue()

  /// How long a scan lasts. Each scan gives one reading.
  private static let period = Duration.milliseconds(500)
  private var nextPeriod = Instant.now
  /// Devices below this level, dBm, are not reported. No receiver reaches either of the two values.
  private var threshold: Int16 = -127

  private static let service = "org.bluez"
  private static let adapter = "org.bluez.Adapter1"
  private static let device = "org.bluez.Device1"
  private static let properties = "org.freedesktop.DBus.Properties"
  private static let objectManager = "org.freedesktop.DBus.ObjectManager"

  /// - Parameter number: the number in `bluez:hci0`.
  init(adapter number: UInt16, _ interruption: Interruption?) throws(RadioError) {
    let name = RadioSpec.bluez(number).description
    self.name = name
    path = "/org/bluez/hci\(number)"
    do { bus = try SystemBus(interruption) } catch { throw RadioError(error, radio: name) }
    clock = LiveClock()
    try watch("path_namespace='\(path)',interface='\(Self.properties)',member='PropertiesChanged'")
    try watch("interface='\(Self.objectManager)',member='InterfacesAdded'")
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
      if nextPeriod <= .now { try scan() }
      let message: BusMessage?
      do {
        message = try bus.receive(until: min(end ?? nextPeriod, nextPeriod))
      } catch {
        throw RadioError(error, radio: name)
      }
      if let message { read(message) }
      // Applies also while useless messages keep coming.
      if let end, end <= .now, heard.first == nil { return .deadline(clock.now) }
    }
  }

  func close() {
    guard isOpen else { return }
    isOpen = false
    // If this fails, the scan ends with the connection.
    _ = try? call("StopDiscovery", timeout: .seconds(1))
  }

  // MARK: - Asking

  private func watch(_ rule: String) throws(RadioError) {
    do {
      _ = try bus.call(
        "AddMatch", of: "org.freedesktop.DBus", at: "/org/freedesktop/DBus", on: "org.freedesktop.DBus"
      ) { $0.append("type='signal',sender='\(Self.service)',\(rule)") }
    } catch {
      throw RadioError(error, radio: name)
    }
  }

  /// Starts or restarts a scan. This also shows what happened to bluetoothd or to the adapter.
  private func scan() throws(RadioError) {
    do {
      try begin()
    } catch .noBluetoothDaemon where isOpen {
      throw .lost(radio: name, reason: "bluetoothd stopped")
    } catch .noAdapter where isOpen {
      throw .lost(radio: name, reason: "the adapter was removed")
    }
  }

  private func begin() throws(RadioError) {
    nextPeriod = .now + Self.period
    threshold = threshold == -127 ? -126 : -127
    let filter: [(String, (BusMessage) -> Void)] = [
      ("Transport", { message in message.append("v", of: "s") { message.append("le") } }),
      ("DuplicateData", { message in message.append("v", of: "b") { message.append(true) } }),
      ("RSSI", { [threshold] message in message.append("v", of: "n") { message.append(threshold) } }),
    ]
    let reply = try call("SetDiscoveryFilter") { $0.append(filter) }
    daemon = reply.sender
    isOpen = true
    do {
      _ = try call("StartDiscovery")
    } catch .bluetoothd(_, _, "org.bluez.Error.InProgress", _) {
      // Our own scan is in progress.
    }
  }

  private func call(
    _ method: String, timeout: Duration = .seconds(5), _ arguments: (BusMessage) -> Void = { _ in }
  ) throws(RadioError) -> BusMessage {
    do {
      return try bus.call(method, of: Self.adapter, at: path, on: Self.service, timeout: timeout, arguments)
    } catch {
      throw RadioError(error, radio: name, method: method)
    }
  }

  // MARK: - Hearing

  private func read(_ signal: BusMessage) {
    guard signal.sender == daemon else { return }
    // A signal of another form is ignored.
    _ = try? { () throws(BusMessage.Malformed) in
      if signal.isSignal(Self.properties, "PropertiesChanged") {
        guard try signal.string() == Self.device else { return }
        try add(DeviceProperties(reading: signal), of: signal.path)
      } else if signal.isSignal(Self.objectManager, "InterfacesAdded") {
        let path = try signal.string("o")
        try signal.entries("sa{sv}") { () throws(BusMessage.Malformed) in
          guard try signal.string() == Self.device else { return try signal.skip("a{sv}") }
          try add(DeviceProperties(reading: signal), of: path)
        }
      }
    }()
  }

  /// A report from the controller has both values. If one is missing, the other did not come from a report.
  private func add(_ properties: DeviceProperties, of device: String) {
    guard device.hasPrefix("\(path)/dev_"), let address = DeviceAddress(path: device),
      let rssi = properties.rssi, let data = properties.advertisingData
    else { return }
    let time = clock.time(timeOfHearing(.now, emptied: bus.emptied))
    heard.add(Advertisement(time: time, address: address, rssi: rssi, data: data))
  }
}

extension DeviceAddress {
  /// From the path of a device: `/org/bluez/hci0/dev_C0_00_00_00_00_01`.
  fileprivate init?(path: String) {
    let digits = path.suffix(17).split(separator: "_", omittingEmptySubsequences: false)
    guard digits.count == 6, digits.allSatisfy({ $0.count == 2 }), let value = UInt64(digits.joined(), radix: 16) else {
      return nil
    }
    self.init(value)
  }
}
