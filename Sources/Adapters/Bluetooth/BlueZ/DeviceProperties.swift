import Domain

/// The properties of a device that a controller would report, in bluetoothd's form: `org.bluez.Device1`.
struct DeviceProperties {
  private(set) var rssi: Int8?
  /// The received AD structures with a manufacturer's data.
  private(set) var advertisingData: [UInt8]?
  /// The service UUIDs that it advertised or offered. A signal of a known device has none.
  private(set) var services: [UUID] = []
  /// Whether the device chose its address. A signal of a known device does not say it.
  private(set) var isRandom = false

  /// Reads a dictionary of properties, `a{sv}`.
  init(reading message: BusMessage) throws(BusMessage.Malformed) {
    var rssi: Int8?
    var data: [UInt8]?
    try message.entries("sv") { () throws(BusMessage.Malformed) in
      switch try message.string() {
      case "RSSI":
        rssi = try Int8(exactly: message.variant("n") { () throws(BusMessage.Malformed) in try message.int16() })
      case "ManufacturerData":
        data = try message.variant("a{qv}") { () throws(BusMessage.Malformed) in try Self.structures(message) }
      case "UUIDs":
        services = try message.variant("as") { () throws(BusMessage.Malformed) in try message.strings() }
          .compactMap(UUID.init)
      case "AddressType":
        isRandom = try message.variant("s") { () throws(BusMessage.Malformed) in try message.string() } == "random"
      default:
        try message.skip("v")
      }
    }
    self.rssi = rssi
    advertisingData = data
  }

  /// Manufacturer Specific Data (Core Specification Supplement, Part A, 1.4) of each company.
  private static func structures(_ message: BusMessage) throws(BusMessage.Malformed) -> [UInt8] {
    var data: [UInt8] = []
    try message.entries("qv") { () throws(BusMessage.Malformed) in
      let company = try message.uint16()
      let bytes = try message.variant("ay") { () throws(BusMessage.Malformed) in try message.bytes() }
      guard let length = UInt8(exactly: bytes.count + 3) else { throw BusMessage.Malformed() }
      data += [length, 0xFF, UInt8(truncatingIfNeeded: company), UInt8(company >> 8)] + bytes
    }
    return data
  }
}
