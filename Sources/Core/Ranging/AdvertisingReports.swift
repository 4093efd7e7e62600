/// Reads advertising reports out of the HCI events of a Bluetooth controller.
///
/// Two events carry them, each with one report or more: LE Advertising Report (Core 5.4, Vol 4, Part E, 7.7.65.2)
/// and LE Extended Advertising Report (7.7.65.13), which also wraps what old advertisers send.
///
/// It keeps one thing from event to event: which advertisers have more than 229 bytes to say, so that their data
/// comes in fragments. Those are skipped from the first to the last. A frame of 27 bytes needs no second fragment,
/// and a fragment that begins inside an AD structure must not be taken for one.
///
/// The reading is put in where it is called, closure and all: as calls from module to module it takes twice as long.
public struct AdvertisingReports: Sendable {
  /// What an event turned out to be.
  public enum Outcome: Sendable {
    /// Advertising reports, all of them whole.
    case whole
    /// Advertising reports, of which one is cut short or has bytes to spare. Those before it were handed over: each
    /// carries its own length, so that damage behind it does not reach it.
    case torn
    /// Another event.
    case unrelated
  }

  /// Who is in the middle of a fragmented advertisement: address, address type and advertising set, in 64 bits.
  @usableFromInline
  var unfinished: [UInt64] = []
  /// Advertisers that never finish must not take all memory; more than this at a time are not kept in mind.
  private static let maximumUnfinished = 32

  public init() {}

  /// Hands over every report of an event, in order, without allocating.
  ///
  /// - Parameters:
  ///   - event: an HCI event packet from its event code on (no H4 packet type).
  ///   - body: gets the sender's address, the RSSI in dBm (nil when it is not available) and the AD structures, which
  ///     are lent for the time of the call.
  @inlinable @inline(__always)
  public mutating func read(
    event: Span<UInt8>, _ body: (_ address: DeviceAddress, _ rssi: Int8?, _ data: Span<UInt8>) -> Void
  ) -> Outcome {
    // Event code 0x3E, LE Meta; length of what follows; subevent; number of reports.
    guard event.count >= 4, event[unchecked: 0] == 0x3E else { return .unrelated }
    let length = 2 &+ Int(event[unchecked: 1])
    // A cut packet does not reach its own end, and what lies behind that is not looked at.
    let end = min(length, event.count)
    let last: Int
    switch event[unchecked: 2] {
    case 0x02: last = readLegacy(event, upTo: end, body)
    case 0x0D: last = readExtended(event, upTo: end, body)
    default: return .unrelated
    }
    return last == length && length == event.count && event[unchecked: 3] > 0 ? .whole : .torn
  }

  // In the two functions below every index was compared with `end` before, which is at most the event's count. Checking
  // it a second time, as a plain subscript does, takes half as long again.

  /// - Returns: where the last report ends, or -1 when one is torn.
  @inlinable @inline(__always)
  func readLegacy(
    _ event: Span<UInt8>, upTo end: Int, _ body: (DeviceAddress, Int8?, Span<UInt8>) -> Void
  ) -> Int {
    // Event type 1, address type 1, address 6, length of the data 1, data, RSSI 1.
    var start = 4
    var left = Int(event[unchecked: 3])
    while left > 0 {
      guard end &- start >= 10 else { return -1 }
      let data = start &+ 9
      let dataEnd = data &+ Int(event[unchecked: start &+ 8])
      guard dataEnd < end, dataEnd &- data <= 31 else { return -1 }
      body(
        Self.address(event, at: start &+ 2), Self.rssi(event[unchecked: dataEnd]),
        event.extracting(unchecked: Range(uncheckedBounds: (data, dataEnd))))
      start = dataEnd &+ 1
      left &-= 1
    }
    return start
  }

  /// - Returns: where the last report ends, or -1 when one is torn.
  @inlinable @inline(__always)
  mutating func readExtended(
    _ event: Span<UInt8>, upTo end: Int, _ body: (DeviceAddress, Int8?, Span<UInt8>) -> Void
  ) -> Int {
    // Event type 2, address type 1, address 6, PHYs 2, advertising set 1, transmit power 1, RSSI 1, interval 2, direct
    // address with its type 7, length of the data 1, data.
    var start = 4
    var left = Int(event[unchecked: 3])
    while left > 0 {
      guard end &- start >= 24 else { return -1 }
      let data = start &+ 24
      let dataEnd = data &+ Int(event[unchecked: start &+ 23])
      guard dataEnd <= end else { return -1 }
      // Bits 5 and 6 of the event type: 0 complete, 1 more to come, 2 truncated by the controller.
      let status = event[unchecked: start] >> 5 & 3
      if status == 0 && unfinished.isEmpty || !isFragment(event, at: start, moreToCome: status == 1) {
        body(
          Self.address(event, at: start &+ 3), Self.rssi(event[unchecked: start &+ 13]),
          event.extracting(unchecked: Range(uncheckedBounds: (data, dataEnd))))
      }
      start = dataEnd
      left &-= 1
    }
    return start
  }

  /// Whether an extended report is a part of a longer advertisement.
  @usableFromInline
  mutating func isFragment(_ event: Span<UInt8>, at start: Int, moreToCome: Bool) -> Bool {
    let address = Self.address(event, at: start + 3).value
    let advertiser = address | UInt64(event[start + 2]) << 48 | UInt64(event[start + 11]) << 56
    let index = unfinished.firstIndex(of: advertiser)
    if moreToCome {
      if index == nil, unfinished.count < Self.maximumUnfinished { unfinished.append(advertiser) }
      return true
    }
    if let index { unfinished.remove(at: index) }
    return index != nil
  }

  /// Eight bytes are read, of which the last two belong to the same report and are dropped.
  @inlinable @inline(__always)
  static func address(_ event: Span<UInt8>, at start: Int) -> DeviceAddress {
    let word = event.bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: start, as: UInt64.self)
    return DeviceAddress(UInt64(littleEndian: word))
  }

  /// HCI gives -127 to +20 dBm, and 127 for not available. Nothing arrives at 0 dBm or more: controllers that say so
  /// mean that they do not know.
  @inlinable @inline(__always)
  static func rssi(_ byte: UInt8) -> Int8? {
    let value = Int8(bitPattern: byte)
    return value < 0 && value != -128 ? value : nil
  }
}
