import Domain
import Encoding
import Ranging
import TestSupport
import Testing

@Suite("The frame of a call") struct CallFrameTests {
  let frame = Domain.UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!

  @Test("is the one service of the advertisement, the low byte first")
  func bytes() {
    #expect(
      CallFrame.advertisingData(frame) == [
        0x11, 0x07, 0x90, 0x2A, 0x1B, 0x6C, 0x0F, 0x1F, 0x55, 0x9A, 0x57, 0x4F, 0x0B, 0x7A, 0x0E, 0x1C, 0x3C, 0x5F,
      ])
    #expect(CallFrame.read(CallFrame.advertisingData(frame)) == frame)
  }

  @Test("is found behind other structures, and in a list that says that it is not complete")
  func among() {
    let own = CallFrame.advertisingData(frame)
    #expect(CallFrame.read([0x02, 0x01, 0x06] + own + [0x02, 0x0A, 0x04]) == frame)
    #expect(CallFrame.read([0x11, 0x06] + own[2...]) == frame)
  }

  @Test("is not found in what is torn, nor in other structures, nor among several")
  func others() {
    let own = CallFrame.advertisingData(frame)
    for count in 0..<own.count { #expect(CallFrame.read(Array(own.prefix(count))) == nil) }
    #expect(CallFrame.read([0x00] + own) == nil)
    #expect(CallFrame.read([0x05, 0x01] + own) != frame)
    #expect(CallFrame.read([0x11, 0x15] + own[2...]) == nil)
    #expect(CallFrame.read([0x21, 0x07] + own[2...] + own[2...]) == nil)
    #expect(CallFrame.read(IBeacon(uuid: frame, major: 1, minor: 2, measuredPower: -59).advertisingData) == nil)
  }

  @Test("no bytes crash the reader")
  func mutations() {
    var random = SplitMix(3)
    for _ in 0..<20_000 {
      var bytes = CallFrame.advertisingData(frame) + [UInt8](repeating: 7, count: Int(random.next() % 14))
      for _ in 0..<3 { bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next()) }
      _ = CallFrame.read(Array(bytes.prefix(Int(random.next() % 32))))
    }
  }
}
