import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOHTTPTypes
import Testing

@testable import Web

/// Clients that ask and read nothing, that ask for everything at once, and that are too many.
@Suite struct ConnectionTests {
  private func channel(_ connections: Connections, from address: String = "192.0.2.1") throws -> EmbeddedChannel {
    let channel = EmbeddedChannel(handler: ConnectionWatch(connections))
    // Where the client is.
    try channel.connect(to: SocketAddress(ipAddress: address, port: 1)).wait()
    return channel
  }

  @Test func `a connection whose client takes nothing is ended after half a minute`() throws {
    let connections = Connections(.init(all: 2, each: 2))
    let channel = try channel(connections)
    channel.write(ByteBuffer(string: "answer"), promise: nil)
    channel.embeddedEventLoop.advanceTime(by: .seconds(29))
    #expect(channel.isActive && connections.counts.open == 1)
    channel.embeddedEventLoop.advanceTime(by: .seconds(1))
    #expect(!channel.isActive && connections.counts.open == 0)
  }

  @Test func `a slow client that takes something stays`() throws {
    let channel = try channel(Connections(.init(all: 2, each: 2)))
    channel.write(ByteBuffer(string: "one"), promise: nil)
    for _ in 0..<5 {
      channel.embeddedEventLoop.advanceTime(by: .seconds(20))
      channel.flush()
      channel.write(ByteBuffer(string: "another"), promise: nil)
    }
    #expect(channel.isActive)
    channel.embeddedEventLoop.advanceTime(by: .seconds(40))
    #expect(!channel.isActive)
  }

  @Test func `a client that has taken everything is not ended for what it asks later`() throws {
    let channel = try channel(Connections(.init(all: 2, each: 2)))
    for _ in 0..<3 {
      channel.writeAndFlush(ByteBuffer(string: "answer"), promise: nil)
      channel.embeddedEventLoop.advanceTime(by: .seconds(300))
    }
    channel.write(ByteBuffer(string: "answer"), promise: nil)
    channel.embeddedEventLoop.advanceTime(by: .seconds(29))
    #expect(channel.isActive)
    _ = try channel.finish(acceptAlreadyClosed: true)
  }

  @Test func `connections are limited for each network and in all`() throws {
    let connections = Connections(.init(all: 4, each: 2))
    // Two addresses of one customer are one network.
    let first = try ["2001:db8::1", "2001:db8::2"].map { try channel(connections, from: $0) }
    #expect(try !channel(connections, from: "2001:db8::3").isActive)
    #expect(try channel(connections, from: "192.0.2.1").isActive)
    #expect(try channel(connections, from: "192.0.2.2").isActive)
    #expect(try !channel(connections, from: "192.0.2.3").isActive)
    #expect(connections.counts == (open: 4, refused: 2))
    try first[0].close().wait()
    #expect(try channel(connections, from: "2001:db8::3").isActive)
  }

  @Test func `at the end every connection is ended, and no other begins`() throws {
    let connections = Connections(.init(all: 4, each: 4))
    let open = try [channel(connections), channel(connections)]
    open[0].write(ByteBuffer(string: "answer"), promise: nil)
    connections.end()
    for channel in open { channel.embeddedEventLoop.run() }
    #expect(open.allSatisfy { !$0.isActive } && connections.counts.open == 0)
    #expect(try !channel(connections).isActive)
  }
}

@Suite struct RequestQueueTests {
  /// What reaches the connection's outer side.
  private final class Outside: ChannelOutboundHandler {
    typealias OutboundIn = HTTPResponsePart
    var reads = 0
    var isEnded = false
    var isOutputClosed = false

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
      isOutputClosed = mode == .output
    }

    func read(context: ChannelHandlerContext) { reads += 1 }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
      isEnded = isEnded || event is ConnectionWatch.End
    }
  }

  private let outside = Outside()
  private let channel: EmbeddedChannel

  init() throws {
    channel = EmbeddedChannel(handlers: [outside, RequestQueue()])
    try channel.connect(to: SocketAddress(ipAddress: "192.0.2.1", port: 1)).wait()
    outside.reads = 0
  }

  private func ask(_ path: String) throws {
    try channel.writeInbound(
      HTTPRequestPart.head(.init(method: .get, scheme: "https", authority: "a", path: path)))
    try channel.writeInbound(HTTPRequestPart.end(nil))
  }

  /// The paths of the requests that were passed on since the last call.
  private func passed() throws -> [String] {
    var paths: [String] = []
    while let part = try channel.readInbound(as: HTTPRequestPart.self) {
      if case .head(let head) = part { paths.append(head.path ?? "") }
    }
    return paths
  }

  private func answer() {
    channel.write(HTTPResponsePart.head(.init(status: .ok)), promise: nil)
    channel.write(HTTPResponsePart.end(nil), promise: nil)
  }

  @Test func `a request waits until the answer before it was taken`() throws {
    for path in ["/1", "/2", "/3"] { try ask(path) }
    #expect(try passed() == ["/1"])
    answer()
    #expect(try passed() == [], "the answer waits for the client")
    channel.flush()
    #expect(try passed() == ["/2"])
    answer()
    channel.flush()
    #expect(try passed() == ["/3"])
  }

  @Test func `nothing is read while requests wait`() throws {
    try ask("/1")
    channel.read()
    #expect(outside.reads == 1)
    try ask("/2")
    channel.read()
    #expect(outside.reads == 1)
    answer()
    channel.flush()
    #expect(outside.reads == 2)
  }

  @Test func `a body arrives while its request is answered`() throws {
    try channel.writeInbound(
      HTTPRequestPart.head(.init(method: .post, scheme: "https", authority: "a", path: "/1")))
    answer()
    channel.flush()
    try channel.writeInbound(HTTPRequestPart.body(ByteBuffer(string: "late")))
    try channel.writeInbound(HTTPRequestPart.end(nil))
    try ask("/2")
    #expect(try passed() == ["/1", "/2"])
  }

  @Test func `too many requests at once end the connection`() throws {
    for _ in 0...RequestQueue.maximumWaiting { try ask("/") }
    #expect(!outside.isEnded)
    try ask("/")
    #expect(outside.isEnded)
  }

  @Test func `a client that sends no more gets its answers`() throws {
    for path in ["/1", "/2"] { try ask(path) }
    let after = After()
    try channel.pipeline.syncOperations.addHandler(after)
    channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    #expect(!after.isClosed)
    answer()
    channel.flush()
    #expect(after.isClosed)
  }

  private final class After: ChannelInboundHandler {
    typealias InboundIn = HTTPRequestPart
    var isClosed = false
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) { isClosed = true }
  }

  private func answered() throws -> (status: Int?, text: String) {
    var (status, text): (Int?, String) = (nil, "")
    while let part = try channel.readOutbound(as: HTTPResponsePart.self) {
      switch part {
      case .head(let head): status = head.status.code
      case .body(let body): text += String(buffer: body)
      case .end: break
      }
    }
    return (status, text)
  }

  @Test func `a header that is too large is said, after the answers before it`() throws {
    try ask("/1")
    channel.pipeline.fireErrorCaught(HTTPParserError.headerOverflow)
    #expect(try answered().status == nil)
    answer()
    channel.flush()
    let (status, text) = try answered()
    #expect(status == 431 && text.contains(#""code":"too_large""#))
    // What comes of the header later is nobody's.
    try ask("/2")
    channel.pipeline.fireErrorCaught(HTTPParserError.headerOverflow)
    #expect(try passed() == ["/1"])
    channel.read()
    #expect(outside.reads == 1, "the rest is read, so that the client sees the answer")
    #expect(outside.isOutputClosed && !outside.isEnded)
    channel.embeddedEventLoop.advanceTime(by: RequestQueue.farewell)
    #expect(outside.isEnded)
  }
}
