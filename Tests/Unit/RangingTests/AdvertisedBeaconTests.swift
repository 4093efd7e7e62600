import Domain
import Ranging
import Testing

@Suite("iBeacon frames in advertising data")
struct AdvertisedBeaconTests {
  private static let uuid = Domain.UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!
  private static let expected = IBeacon(uuid: uuid, major: 0x0102, minor: 0xFF07, measuredPower: -59)
  private static let flags: [UInt8] = [0x02, 0x01, 0x06]
  private static let beacon: [UInt8] = [
    0x1A, 0xFF, 0x4C, 0x00, 0x02, 0x15,
    0x5F, 0x3C, 0x1C, 0x0E, 0x7A, 0x0B, 0x4F, 0x57, 0x9A, 0x55, 0x1F, 0x0F, 0x6C, 0x1B, 0x2A, 0x90,
    0x01, 0x02, 0xFF, 0x07, 0xC5,
  ]

  private static let name: [UInt8] = [0x05, 0x09, 0x53, 0x74, 0x65, 0x70]
  /// Another manufacturer's data, and another of Apple's.
  private static let others: [UInt8] = [0x04, 0xFF, 0x59, 0x00, 0x02, 0x05, 0xFF, 0x4C, 0x00, 0x10, 0x00]

  private func read(_ data: [UInt8]) -> IBeacon? { IBeacon(advertisingData: data.span) }

  @Test(
    "are found in any order of structures",
    arguments: [
      flags + beacon, beacon, beacon + flags, name + flags + beacon, others + beacon,
      beacon + [0x00, 0x00, 0x00] as [UInt8],
      // What follows is torn, but it is not the beacon.
      beacon + [0x09, 0x09, 0x53] as [UInt8],
    ])
  func anyOrder(data: [UInt8]) {
    #expect(read(data) == Self.expected)
  }

  @Test("are encoded with Flags in front, as beacons send them")
  func encoded() {
    #expect(Self.expected.advertisingData == Self.flags + Self.beacon)
  }

  @Test("are not found where any byte of their head is another")
  func head() {
    for index in 0..<6 {
      for bit in 0..<8 {
        var data = Self.beacon
        data[index] ^= 1 << bit
        #expect(read(data) == nil, "byte \(index), bit \(bit)")
      }
    }
  }

  /// A beacon with bytes behind its measured power, in a structure whose length covers them.
  private static func beacon(followedBy rest: [UInt8], from beacon: [UInt8] = beacon) -> [UInt8] {
    [UInt8(0x1A + rest.count)] + Array(beacon.dropFirst()) + rest
  }

  @Test("are found with bytes behind the power, which are the maker's", arguments: 1...5)
  func bytesBehind(count: Int) {
    for byte in [0x00, 0x64, 0xFF] as [UInt8] {
      let longer = Self.beacon(followedBy: [UInt8](repeating: byte, count: count))
      for data in [longer, Self.flags + longer, longer + Self.flags, Self.flags + longer + [0x09, 0x09]] {
        #expect(read(data) == Self.expected, "\(byte)")
      }
    }
    // What looks like another structure belongs to this one.
    #expect(read(Self.beacon(followedBy: [0x00, 0xFF])) == Self.expected)
  }

  @Test("are not found where a length is a lie", arguments: 0...5)
  func lyingLengths(count: Int) {
    let longer = Self.beacon(followedBy: [UInt8](repeating: 0x64, count: count))
    // Longer than the data, by one byte and by more; shorter than a beacon.
    for length in Array(UInt8(0x1B + count)...0xFF) + Array(0x01..<0x1A) {
      #expect(read([length] + longer.dropFirst()) == nil, "\(length)")
    }
    // Apple's own length is that of UUID, major, minor and power.
    for length in UInt8.min...UInt8.max where length != 0x15 {
      var data = longer
      data[5] = length
      #expect(read(data) == nil, "\(length)")
    }
    #expect(read(longer.dropLast()) == nil)
  }

  private func readAll(_ data: [UInt8]) -> [IBeacon] {
    Advertisement(time: UnixTime(microseconds: 1), address: DeviceAddress(1), rssi: -60, data: data).iBeacons
  }

  @Test("are all found where an advertisement has several, and each once")
  func several() {
    let other = IBeacon(uuid: Self.uuid, major: 1, minor: 2, measuredPower: -70)
    let second = Array(other.advertisingData.dropFirst(3))
    #expect(readAll(Self.flags) == [])
    #expect(readAll(Self.flags + Self.beacon) == [Self.expected])
    #expect(readAll(Self.beacon + second) == [Self.expected, other])
    #expect(readAll(second + Self.flags + Self.beacon(followedBy: [1, 2])) == [other, Self.expected])
    #expect(readAll(Self.beacon + second + Self.beacon) == [Self.expected, other])
    // The second one is torn, or the data ends before it.
    #expect(readAll(Self.beacon + second.dropLast()) == [Self.expected])
    #expect(readAll(Self.beacon + [0x00] + second) == [Self.expected])
  }

  @Test("are not found where they are cut short, wherever that is")
  func cutShort() {
    let data = Self.flags + Self.beacon
    for count in 0..<data.count {
      #expect(read(Array(data.prefix(count))) == nil, "\(count) bytes")
    }
  }

  @Test("are not found behind a structure of length 0, which ends the data (Core 5.4, Vol 3, Part C, 11)")
  func earlyTermination() {
    #expect(read([0x00] + Self.beacon) == nil)
    #expect(read(Self.flags + [0x00] + Self.beacon) == nil)
  }

  @Test("are not found behind a structure that runs over the end")
  func overrun() {
    #expect(read([0xFF] + Self.beacon) == nil)
  }

  @Test("keep the sign of the measured power", arguments: [(0x00, 0), (0x7F, 127), (0x80, -128), (0xFF, -1)])
  func measuredPower(byte: UInt8, power: Int8) {
    #expect(read(Self.beacon.dropLast() + [byte])?.measuredPower == power)
  }

  @Test("are read from an advertisement")
  func advertisement() {
    let advertisement = Advertisement(
      time: UnixTime(microseconds: 1), address: DeviceAddress(0xC000_0000_0001), rssi: -60, data: Self.beacon)
    #expect(advertisement.iBeacon == Self.expected)
  }

  @Test(
    "come from addresses that read as people write them",
    arguments: [
      (0xC000_0000_0001, "C0:00:00:00:00:01"), (0x0012_3456_789A, "00:12:34:56:78:9A"), (0, "00:00:00:00:00:00"),
    ] as [(UInt64, String)])
  func addresses(value: UInt64, text: String) {
    #expect(DeviceAddress(value).description == text)
    // The 16 bits above do not belong to it.
    #expect(DeviceAddress(value | 0xFFFF << 48) == DeviceAddress(value))
    // The type does, and the bits do not tell it: DC:A6:32 and E4:5F:01 are manufacturers' prefixes.
    #expect(DeviceAddress(value, isRandom: true) != DeviceAddress(value))
    #expect(DeviceAddress(value, isRandom: true).description == text)
  }
}
