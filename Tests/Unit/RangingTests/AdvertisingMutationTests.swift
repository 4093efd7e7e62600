import Ranging
import TestSupport
import Testing

@Suite("advertising reports under mutation")
struct AdvertisingMutationTests {
  private static let seeds: [[UInt8]] = [
    [
      0x3E, 0x2A, 0x02, 0x01, 0x03, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0xC0, 0x1E, 0x02, 0x01, 0x06, 0x1A, 0xFF, 0x4C,
      0x00, 0x02, 0x15, 0x5F, 0x3C, 0x1C, 0x0E, 0x7A, 0x0B, 0x4F, 0x57, 0x9A, 0x55, 0x1F, 0x0F, 0x6C, 0x1B, 0x2A, 0x90,
      0x00, 0x01, 0x00, 0x07, 0xC5, 0xC3,
    ],
    [
      0x3E, 0x38, 0x0D, 0x01, 0x10, 0x00, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0xC0, 0x01, 0x00, 0xFF, 0x7F, 0xC3, 0x00,
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x1E, 0x02, 0x01, 0x06, 0x1A, 0xFF, 0x4C, 0x00, 0x02, 0x15, 0x5F,
      0x3C, 0x1C, 0x0E, 0x7A, 0x0B, 0x4F, 0x57, 0x9A, 0x55, 0x1F, 0x0F, 0x6C, 0x1B, 0x2A, 0x90, 0x00, 0x01, 0x00, 0x07,
      0xC5,
    ],
  ]

  @Test("never read outside of their event", arguments: 0..<16 as Range<UInt64>)
  func mutations(seed: UInt64) {
    var random = SplitMix(seed)
    var state = AdvertisingReports()
    for _ in 0..<4000 {
      var event = Self.seeds.randomElement(using: &random)!
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        guard let index = event.indices.randomElement(using: &random) else { break }
        switch Int.random(in: 0..<5, using: &random) {
        case 0: event[index] = .random(in: 0...255, using: &random)
        case 1: event[index] ^= 1 << Int.random(in: 0..<8, using: &random)
        case 2: event.removeSubrange(index...)
        case 3: event.remove(at: index)
        default: event.insert([0x00, 0x01, 0x1A, 0x7F, 0xFF].randomElement(using: &random)!, at: index)
        }
      }
      // On the heap and of the exact size: a read outside of it is one that the address sanitizer sees.
      let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: event.count)
      defer { copy.deallocate() }
      _ = copy.initialize(from: event)
      var told = 0
      _ = state.read(event: copy.span) { _, rssi, data in
        told += data.count
        #expect(rssi.map { (-127 ... -1).contains($0) } ?? true)
        _ = IBeacon(advertisingData: data)
      }
      #expect(told <= event.count)
    }
  }
}
