import Ranging

/// Sums of what was found, which keep the compiler from leaving work out; the same in parser.c.
struct Totals {
  var reports: UInt64 = 0
  var beacons: UInt64 = 0
  var whole: UInt64 = 0
  var torn: UInt64 = 0
  var fields: UInt64 = 0
}

/// Reads `count` events: number i is bytes[offsets[i]] up to bytes[offsets[i + 1]].
@_cdecl("parse_swift")
public func parse(
  _ bytes: UnsafePointer<UInt8>, _ offsets: UnsafePointer<UInt32>, _ count: Int, _ totals: UnsafeMutableRawPointer
) {
  var found = Totals()
  var reader = AdvertisingReports()
  for index in 0..<count {
    let event = UnsafeBufferPointer(start: bytes + Int(offsets[index]), count: Int(offsets[index + 1] - offsets[index]))
    let outcome = reader.read(event: event.span) { address, rssi, data in
      found.reports &+= 1
      // 1 is in place of none.
      found.fields &+= address.value ^ UInt64(bitPattern: Int64(rssi ?? 1))
      guard let beacon = IBeacon(advertisingData: data) else { return }
      found.beacons &+= 1
      let numbers = UInt64(beacon.major) << 16 | UInt64(beacon.minor)
      found.fields &+= beacon.uuidHigh ^ beacon.uuidLow ^ numbers ^ UInt64(bitPattern: Int64(beacon.measuredPower))
    }
    switch outcome {
    case .whole: found.whole &+= 1
    case .torn: found.torn &+= 1
    case .unrelated: break
    }
  }
  totals.storeBytes(of: found, as: Totals.self)
}
