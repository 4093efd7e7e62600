import Domain
import Encoding
import Tags
import Testing

@Suite("Messages between stepctl and stepctl-nfc")
struct MessageTests {
  static let target = NFCTarget(
    atqa: [0x03, 0x44], sak: 0x20, uid: [0x04, 1, 2, 3, 4, 5, 6], ats: [0x77, 0x77, 0x71, 0x02, 0x80])!

  static let requests: [NFCRequest] = [
    .find, .open(connection: "pn532_uart:/dev/ttyUSB0:115200"), .open(connection: ""), .select, .restart,
    .exchange(command: [0x30, 0x04], .easy), .exchange(command: [UInt8](repeating: 7, count: 256), .raw),
  ]
  static let replies: [NFCReply] = [
    .found(connection: "pn53x_usb:001:002"), .opened, .selected(target),
    .selected(NFCTarget(atqa: [0, 0], sak: 0, uid: [8, 1, 2, 3], ats: [])!), .nothing, .received([]),
    .received([UInt8](repeating: 9, count: 264)), .failed(code: -20), .failed(code: -90),
  ]

  @Test("are read as they were written", arguments: requests)
  func request(_ request: NFCRequest) throws {
    #expect(try NFCRequest(body: request.body) == request)
  }

  @Test("and so are replies", arguments: replies)
  func reply(_ reply: NFCReply) throws {
    #expect(try NFCReply(body: reply.body) == reply)
  }

  @Test("a request is no reply, nor the other way round")
  func direction() {
    for request in Self.requests { #expect(throws: MalformedMessage.self) { try NFCReply(body: request.body) } }
    for reply in Self.replies { #expect(throws: MalformedMessage.self) { try NFCRequest(body: reply.body) } }
  }

  @Test("none is longer than its limit")
  func longest() {
    let connection = String(repeating: "x", count: 1023)
    #expect(NFCRequest.open(connection: connection).body.count == NFCRequest.longest)
    #expect(NFCReply.found(connection: connection).body.count == NFCReply.longest)
  }

  @Test("a request that libnfc could not send without damage is refused")
  func tooLong() {
    let body = NFCRequest.exchange(command: [UInt8](repeating: 0, count: 257), .easy).body
    #expect(throws: MalformedMessage.self) { try NFCRequest(body: body) }
  }

  @Test(
    "anything else is refused",
    arguments: [
      [], [0x00], [0x05, 0x00], [0x06], [0x07], [0x01, 0x00], [0x03, 0x00], [0x04], [0x04, 0x00], [0x04, 0x02, 0x30],
      [0x02, 0xFF], [0x02, 0x41, 0x00],
    ] as [[UInt8]])
  func malformedRequest(_ body: [UInt8]) {
    #expect(throws: MalformedMessage.self) { try NFCRequest(body: body) }
  }

  @Test(
    "and so are such replies",
    arguments: [
      [], [0x80], [0x81], [0x81, 0xFF], [0x82, 0x00], [0x84, 0x00], [0x86], [0x86, 0x14], [0x86, 0xEC, 0x00], [0x87],
      [0x83, 0x00, 0x07, 0x00, 0x44, 1, 2, 3], [0x83, 0x00, 0x07, 0x00, 0x44, 1, 2, 3, 4],
      [0x83, 0x00, 0x05, 0x00, 0x44, 1, 2, 3, 4, 5], [0x83, 0x00, 0xFF],
    ] as [[UInt8]])
  func malformedReply(_ body: [UInt8]) {
    #expect(throws: MalformedMessage.self) { try NFCReply(body: body) }
  }
}
