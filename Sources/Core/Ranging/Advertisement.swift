public import Domain

/// One frame that a radio heard: its sender, its strength and its content.
public struct Advertisement: Hashable, Sendable {
  /// On the radio's clock: a capture's own, or the wall clock.
  public let time: UnixTime
  /// The sender's address, which may be random and change: no identity.
  public let address: DeviceAddress
  /// dBm; nil when the controller could not tell.
  public let rssi: Int8?
  /// AD structures (Core 5.4, Vol 3, Part C, 11), as they came.
  public let data: [UInt8]

  public init(time: UnixTime, address: DeviceAddress, rssi: Int8?, data: [UInt8]) {
    self.time = time
    self.address = address
    self.rssi = rssi
    self.data = data
  }

  /// Copies AD structures that were lent.
  public init(time: UnixTime, address: DeviceAddress, rssi: Int8?, copying data: Span<UInt8>) {
    self.init(time: time, address: address, rssi: rssi, data: data.withUnsafeBufferPointer { Array($0) })
  }

  /// The iBeacon frame in it, if there is one.
  public var iBeacon: IBeacon? { IBeacon(advertisingData: data.span) }
}
