import Encoding
import SystemIO
import TestSupport
import Testing
import TrafficFeed

@Suite("Feed's address and messages") struct TrafficFeedTests {
  @Test("an address is read")
  func addresses() throws {
    #expect(
      try FeedAddress("wss://a.example/traffic?x=1") == .bridge(host: "a.example", port: 443, path: "/traffic?x=1"))
    #expect(try FeedAddress("wss://a.example:8443") == .bridge(host: "a.example", port: 8443, path: "/"))
    #expect(try FeedAddress("wss://[::1]:8443/b") == .bridge(host: "::1", port: 8443, path: "/b"))
    #expect(try FeedAddress("wss://[::1]/b") == .bridge(host: "::1", port: 443, path: "/b"))
    #expect(try FeedAddress("file:a b.jsonl") == .recording("a b.jsonl"))
  }

  @Test(
    "what is no address is refused",
    arguments: [
      "", "file:", "ws://a/", "wss://", "wss:///a", "wss://a:0/", "wss://a:65536/", "wss://a:+1/", "wss://a:٣/",
      "wss://a b/",
      "wss://a/\r\nHost:b", "wss://u@a/", "wss://a/#b", "wss://a?b", "wss://::1/", "wss://[]/", "wss://ä/",
    ])
  func noAddress(text: String) { #expect(throws: FeedAddress.Malformed.self) { try FeedAddress(text) } }

  @Test("messages are read as they were written, and frames are put together")
  func messages() throws {
    let frame = (0..<150_000).map { UInt8(truncatingIfNeeded: $0) }
    let messages = FeedMessage.messages(frame, received: 1_700_000_000_000_000, dropped: 3)
    #expect(messages.count == 3)
    var assembly = FrameAssembly()
    for message in messages + [.connected, .ended(.refused, "why")] {
      #expect(try FeedMessage(body: message.body) == message)
      switch message {
      case .part(let part): try assembly.take(part)
      case .frame(_, _, let rest): #expect(try assembly.finish(rest) == frame)
      case .connected, .ended: break
      }
    }
    // The next one begins anew.
    #expect(try assembly.finish([1]) == [1])
  }

  @Test("what no program of ours says is refused, and a frame without end, too")
  func malformed() throws {
    let bodies: [[UInt8]] = [
      [], [0], Array("cc".utf8), Array("p".utf8), Array("f123456789ab".utf8),
      [UInt8(ascii: "f")] + [UInt8](repeating: 0xFF, count: 12),
      Array("e".utf8), [UInt8(ascii: "e"), 0], [UInt8(ascii: "e"), 1] + [UInt8](repeating: 0x41, count: 201),
    ]
    for body in bodies { #expect(throws: MalformedMessage()) { try FeedMessage(body: body) } }
    var assembly = FrameAssembly()
    let part = [UInt8](repeating: 0, count: FeedMessage.longestPart)
    for _ in 0..<17 { try assembly.take(part) }
    #expect(throws: MalformedMessage()) { try assembly.take(part) }
  }

  @Test(
    "a program that connects twice, or says what is on the road before it has connected, is given up",
    arguments: [
      [FeedMessage.connected, .connected], [.part([1])], [.frame(received: 1, dropped: 0, rest: [1])],
    ])
  func oddProgram(messages: [FeedMessage]) throws {
    let folder = try TemporaryFolder()
    let octal = messages.flatMap { Frames.frame($0.body) }.map { byte in
      let digits = String(byte, radix: 8)
      return "\\" + String(repeating: "0", count: 3 - digits.count) + digits
    }
    // The first argument is the host, and to a shell its script.
    let script = try folder.write("script", "printf '\(octal.joined())'\nexec sleep 60\n")
    let connection = try FeedConnection(
      host: script, port: 1, path: "/", .init(authorities: nil, certificate: nil, key: nil), program: "/bin/sh")
    #expect(throws: FeedError.gaveUp("\(script):1")) {
      for _ in messages { _ = try connection.next(until: .now + .seconds(50)) }
    }
  }

  @Test("an address is written as it was read")
  func description() throws {
    for text in ["wss://a.example/traffic?x=1", "wss://a.example:8443/", "wss://[::1]:8443/b", "file:a b.jsonl"] {
      #expect(try FeedAddress(text).description == text)
    }
  }

  @Test("what a bridge's program says is read as it was written")
  func bridgeMessages() throws {
    var counts = BridgeCounts()
    (counts.clients, counts.received, counts.sent, counts.refused) = (2, 1 << 40, 7, 1)
    let messages: [BridgeMessage] = [
      .listening(65_535), .note("client connected, 1 now"), .counts(counts), .failed(.port, "in use"),
      .failed(.setup, ""), .failed(.forbidden, "[::]:443: Permission denied"),
    ]
    for message in messages {
      #expect(try BridgeMessage(body: message.body) == message)
      // A pipe takes it whole (PIPE_BUF, pipe(7)).
      #expect(message.body.count < 4096)
    }
    #expect(BridgeMessage.note(String(repeating: "ä", count: 5000)).body.count < 4096)
  }

  @Test("what no bridge's program says is refused")
  func malformedBridgeMessages() {
    let bodies: [[UInt8]] = [
      [], [0], Array("l".utf8), Array("l123".utf8), Array("x".utf8), [UInt8(ascii: "x"), 0], [UInt8(ascii: "s"), 1],
      [UInt8(ascii: "s")] + [UInt8](repeating: 0xFF, count: 48), [UInt8(ascii: "s")] + [UInt8](repeating: 0, count: 49),
      [UInt8(ascii: "n")] + [UInt8](repeating: 0x41, count: 301),
    ]
    for body in bodies { #expect(throws: MalformedMessage()) { try BridgeMessage(body: body) } }
  }
}
