public import Domain

/// One frame that a radio heard: its sender, its strength and its content.
public struct Advertisement: Hashable, Sendable {
  /// On the radio's clock: a capture's own clock, or the wall clock.
  public let time: UnixTime
  /// The sender's address. It may be random and change, so it is no identity.
  public let address: DeviceAddress
  /// In dBm; nil if the controller could not measure it.
  public let rssi: Int8?
  /// AD structures (Core 5.4, Vol 3, Part C, 11), as received.
  public let data: [UInt8]

  public init(time: UnixTime, address: DeviceAddress, rssi: Int8?, data: [UInt8]) {
    self.time = time
    self.address = address
    self.rssi = rssi
    self.data = data
  }

  /// Copies borrowed AD structures.
  public init(time: UnixTime, address: DeviceAddress, rssi: Int8?, copying data: Span<UInt8>) {
    self.init(time: time, address: address, rssi: rssi, data: data.withUnsafeBufferPointer { Array($0) })
  }

  /// The first iBeacon frame in it, if there is one.
  public var iBeacon: IBeacon? { IBeacon(advertisingData: data.span) }

  /// All iBeacon frames in it, in order. A long advertisement has room for several. The same frame twice is one
  /// measurement, and is there once.
  public var iBeacons: [IBeacon] {
    var beacons: [IBeacon] = []
    var next = 0
    while let beacon = IBeacon(advertisingData: data.span, from: &next) {
      if !beacons.contains(beacon) { beacons.append(beacon) }
    }
    return beacons
  }
}
