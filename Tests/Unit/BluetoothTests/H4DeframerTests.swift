import Bluetooth
import Testing

@Suite("H4 framing")
struct H4DeframerTests {
  /// Cuts bytes that arrive in pieces of a size into events.
  private func events(
    _ bytes: [UInt8], piece: Int = .max
  ) -> (events: [[UInt8]], garbage: H4Deframer.Garbage?) {
    var deframer = H4Deframer()
    var events: [[UInt8]] = []
    var rest = bytes[...]
    do throws(H4Deframer.Garbage) {
      while !rest.isEmpty {
        rest.prefix(piece).withUnsafeBytes { deframer.append($0) }
        rest = rest.dropFirst(piece)
        while let event = try deframer.nextEvent() { events.append(event) }
      }
      return (events, nil)
    } catch {
      return (events, error)
    }
  }

  private static let stream: [UInt8] =
    [0x04, 0x0E, 0x04, 0x01, 0x03, 0x0C, 0x00]  // Command Complete
    + [0x02, 0x01, 0x20, 0x02, 0x00, 0xAA, 0x04]  // ACL data, 2 bytes
    + [0x04, 0x13, 0x00]  // an event without parameters
    + [0x03, 0x01, 0x00, 0x01, 0x04]  // SCO data, 1 byte
    + [0x05, 0x01, 0x00, 0x01, 0xC0, 0x04]  // ISO data, 1 byte; reserved bits set
    + [0x04, 0x3E, 0x01, 0x02]

  private static let expected: [[UInt8]] = [
    [0x0E, 0x04, 0x01, 0x03, 0x0C, 0x00], [0x13, 0x00], [0x3E, 0x01, 0x02],
  ]

  @Test("gives the events and passes over data, whatever pieces they come in", arguments: [1, 2, 3, 5, 1000])
  func pieces(size: Int) {
    let (events, garbage) = events(Self.stream, piece: size)
    #expect(events == Self.expected)
    #expect(garbage == nil)
  }

  @Test("stops at the first byte that begins no packet", arguments: [0x00, 0x01, 0x06, 0xFF] as [UInt8])
  func garbage(byte: UInt8) {
    for size in [1, 1000] {
      let (events, garbage) = events(Self.stream + [byte] + Self.stream, piece: size)
      #expect(events == Self.expected)
      #expect(garbage == H4Deframer.Garbage(offset: UInt64(Self.stream.count), byte: byte))
    }
  }
}
