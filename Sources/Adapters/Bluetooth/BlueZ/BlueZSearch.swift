import Domain
import Ranging
import SystemIO

/// Finds a device by a service that it advertises, through bluetoothd, without any privilege.
///
/// bluetoothd signals a device's services only once, and perhaps before this program listens. So its list of devices is
/// read again and again. A device that was heard in the present scan has a level there.
enum BlueZSearch {
  private static let pause = Duration.milliseconds(200)

  /// Scans until such a device is heard, and ends its own scan.
  ///
  /// - Parameters:
  ///   - number: the number in `bluez:hci0`.
  ///   - isMeant: whether a service UUID is the device's.
  /// - Returns: nil if none is heard until `end`.
  static func find(
    with number: UInt16, until end: Instant, _ interruption: Interruption, _ isMeant: (UUID) -> Bool
  ) throws(RadioError) -> DeviceAddress? {
    let adapter = try BlueZAdapter(number, interruption)
    try adapter.discover()
    defer { adapter.endDiscovery() }
    repeat {
      let devices = try adapter.call("GetManagedObjects", of: BlueZAdapter.objectManager, at: "/")
      if let address = try? address(in: devices, below: adapter.path, isMeant) { return address }
      let look = min(end, .now + pause)
      while try adapter.receive(until: look) != nil {}
    } while end > .now
    return nil
  }

  /// Lets bluetoothd forget a device to which there was a connection. It ends the connection, 2 s later, and forgets.
  ///
  /// bluetoothd looks at the services of whatever is connected. From then on it tells those, and no longer the
  /// advertised one, until it forgets the device: by itself only 30 s later.
  static func forget(_ device: DeviceAddress, with number: UInt16) {
    guard let adapter = try? BlueZAdapter(number, nil) else { return }
    let name = String("\(device)".map { $0 == ":" ? "_" : $0 })
    let path = "\(adapter.path)/dev_\(name)"
    _ = try? adapter.call("RemoveDevice", timeout: .milliseconds(100)) { $0.append(path: path) }
  }

  private static func address(
    in devices: BusMessage, below path: String, _ isMeant: (UUID) -> Bool
  ) throws(BusMessage.Malformed) -> DeviceAddress? {
    var found: DeviceAddress?
    try devices.entries("oa{sa{sv}}") { () throws(BusMessage.Malformed) in
      let device = try devices.string("o")
      try devices.entries("sa{sv}") { () throws(BusMessage.Malformed) in
        guard try devices.string() == BlueZAdapter.device else { return try devices.skip("a{sv}") }
        let properties = try DeviceProperties(reading: devices)
        guard device.hasPrefix("\(path)/dev_"), properties.rssi != nil, properties.services.contains(where: isMeant),
          let address = DeviceAddress(path: device, isRandom: properties.isRandom)
        else { return }
        found = address
      }
    }
    return found
  }
}
