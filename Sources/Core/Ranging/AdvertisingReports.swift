/// Reads advertising reports out of the HCI events of a Bluetooth controller.
///
/// Two events carry them, each with one or more reports: LE Advertising Report (Core 5.4, Vol 4, Part E, 7.7.65.2) and
/// LE Extended Advertising Report (7.7.65.13). The second also carries the advertisements of older devices.
///
/// One thing is remembered from event to event: the advertisers of which only some fragments have come. Data of more
/// than 229 bytes comes in fragments, and all of them are skipped. An iBeacon's 27 bytes fit into one report, and a
/// fragment may begin inside an AD structure, where it would be misread.
///
/// The code is inlined into its callers, closures included: calls across modules take twice as long.
public struct AdvertisingReports: Sendable {
  /// What an event turned out to be.
  public enum Outcome: Sendable {
    /// Advertising reports, all of them whole.
    case whole
    /// Advertising reports, one of which is too short or too long. The reports before it were passed on: each report
    /// carries its own length, so later damage does not affect it.
    case torn
    /// Another event.
    case unrelated
  }

  /// The advertisers in the middle of fragmented data: address, address type and advertising set, in 64 bits.
  @usableFromInline
  var unfinished: [UInt64] = []
  /// How many unfinished advertisers are remembered. If they never finish, newer ones replace them.
  private static let maximumUnfinished = 32

  public init() {}

  /// Passes every report of an event to `body`, in order, without allocating.
  ///
  /// - Parameters:
  ///   - event: an HCI event packet from its event code on (no H4 packet type).
  ///   - body: receives the sender's address, the RSSI in dBm (nil when it is not available) and the AD structures,
  ///     which are borrowed for the duration of the call.
  @inlinable @inline(__always)
  public mutating func read(
    event: Span<UInt8>, _ body: (_ address: DeviceAddress, _ rssi: Int8?, _ data: Span<UInt8>) -> Void
  ) -> Outcome {
    // Event code 0x3E, LE Meta; length of the rest; subevent; number of reports.
    guard event.count >= 4, event[unchecked: 0] == 0x3E else { return .unrelated }
    let length = 2 &+ Int(event[unchecked: 1])
    // A packet may be cut before its stated end. Bytes behind the stated end are ignored.
    let end = min(length, event.count)
    let last: Int
    switch event[unchecked: 2] {
    case 0x02: last = readLegacy(event, upTo: end, body)
    case 0x0D: last = readExtended(event, upTo: end, body)
    default: return .unrelated
    }
    return last == length && length == event.count && event[unchecked: 3] > 0 ? .whole : .torn
  }

  // The two functions below compare every index with `end`, which is at most the event's count. A plain subscript would
  // check it again and take half as long again.

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
        Self.address(event, at: start &+ 1), Self.rssi(event[unchecked: dataEnd]),
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
          Self.address(event, at: start &+ 2), Self.rssi(event[unchecked: start &+ 13]),
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
    let address = Self.address(event, at: start + 2).value
    let advertiser = address | UInt64(event[start + 2]) << 48 | UInt64(event[start + 11]) << 56
    let index = unfinished.firstIndex(of: advertiser)
    if moreToCome {
      if index == nil {
        if unfinished.count == Self.maximumUnfinished { unfinished.removeFirst() }
        unfinished.append(advertiser)
      }
      return true
    }
    if let index { unfinished.remove(at: index) }
    return index != nil
  }

  /// The type of the address, one byte, and the address. Eight bytes are read: the last belongs to the same report and
  /// is dropped. Odd types are random addresses: 1, and 3 for one that the controller has resolved.
  @inlinable @inline(__always)
  static func address(_ event: Span<UInt8>, at start: Int) -> DeviceAddress {
    let word = UInt64(littleEndian: event.bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: start, as: UInt64.self))
    return DeviceAddress(word >> 8, isRandom: word & 1 == 1)
  }

  /// HCI gives -127 to +20 dBm, and 127 for "not available". No frame arrives at 0 dBm or more, so such a value means
  /// that the controller does not know.
  @inlinable @inline(__always)
  static func rssi(_ byte: UInt8) -> Int8? {
    let value = Int8(bitPattern: byte)
    return value < 0 && value != -128 ? value : nil
  }
}
