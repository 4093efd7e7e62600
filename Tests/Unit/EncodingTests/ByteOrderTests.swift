import Encoding
import Testing

@Suite("Byte order") struct ByteOrderTests {
  @Test("the most significant byte comes first, or last")
  func order() {
    #expect(UInt32(0x0102_0304).bigEndianBytes == [1, 2, 3, 4])
    #expect(UInt32(0x0102_0304).littleEndianBytes == [4, 3, 2, 1])
    #expect(Int64(-2).bigEndianBytes == [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE])
    #expect(Int8(-59).bigEndianBytes == [0xC5])
  }

  @Test("a number is read back, and from fewer bytes than it has")
  func read() {
    #expect(UInt16(bigEndianBytes: [0xFE, 0x01]) == 0xFE01)
    #expect(UInt16(littleEndianBytes: [0xFE, 0x01]) == 0x01FE)
    #expect(Int64(bigEndianBytes: Int64.min.bigEndianBytes) == .min)
    #expect(UInt8(bigEndianBytes: [7]) == 7)
    #expect(UInt32(littleEndianBytes: [3, 2, 1]) == 0x01_02_03)
    #expect(Int(bigEndianBytes: []) == 0)
  }

  @Test("of more bytes than the type has, the last count")
  func tooMany() { #expect(UInt16(bigEndianBytes: [9, 0x12, 0x34]) == 0x1234) }
}
