import Encoding
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// Passes a connection's requests on one at a time: the next one when the kernel has taken all of the answer to the one
/// before.
///
/// HTTP/1.1 lets a client send requests without waiting for answers. Without this the server would answer all of them,
/// and keep the answers for a client that reads none.
///
/// It also answers a header that is too large, which the decoder reports as an error.
final class RequestQueue: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  /// Bytes of a request's first line and fields.
  static let maximumHeader = 16_384
  static let maximumFields = 100
  /// A connection with more requests that wait is ended. Nothing more is read while some wait, so only what one read
  /// brought can wait.
  static let maximumWaiting = 256
  /// How long a refused client may take to read the answer.
  static let farewell = TimeAmount.seconds(5)

  private enum Waiting {
    case part(HTTPRequestPart)
    case closedInput
    case error(any Error)
    case tooLargeHeader
  }

  // Most clients ask one thing after the other.
  private var waiting = CircularBuffer<Waiting>(initialCapacity: 1)
  private var waitingRequests = 0
  /// The end of the present request was not passed on yet.
  private var isArriving = false
  /// The kernel has not taken all of the present request's answer.
  private var isAnswering = false
  private var isReadWanted = false
  /// The connection ends with the answer that the header is too large.
  private var isOver = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let part = unwrapInboundIn(data)
    if isOver { return }
    if waiting.isEmpty, canPass(part) { return pass(part, context) }
    if case .head = part {
      waitingRequests += 1
      guard waitingRequests <= Self.maximumWaiting else { return end(context) }
    }
    waiting.append(.part(part))
  }

  func read(context: ChannelHandlerContext) {
    if waiting.isEmpty || isOver { context.read() } else { isReadWanted = true }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    // The handlers above take nothing more after this.
    if !waiting.isEmpty, case ChannelEvent.inputClosed? = event as? ChannelEvent {
      waiting.append(.closedInput)
    } else {
      context.fireUserInboundEventTriggered(event)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // The decoder reports each later byte, too.
    if isOver { return }
    if case HTTPParserError.headerOverflow? = error as? HTTPParserError, !isArriving || !waiting.isEmpty {
      waiting.append(.tooLargeHeader)
      advance(context)
    } else if waiting.isEmpty {
      context.fireErrorCaught(error)
    } else {
      waiting.append(.error(error))
    }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard case .end = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
    let sent = promise ?? context.eventLoop.makePromise()
    sent.futureResult.assumeIsolated().whenComplete { _ in
      self.isAnswering = false
      self.advance(context)
    }
    context.write(data, promise: sent)
  }

  func channelInactive(context: ChannelHandlerContext) {
    waiting.removeAll()
    context.fireChannelInactive()
  }

  private func canPass(_ part: HTTPRequestPart) -> Bool {
    if case .head = part { !isArriving && !isAnswering } else { true }
  }

  private func pass(_ part: HTTPRequestPart, _ context: ChannelHandlerContext) {
    switch part {
    case .head: (isArriving, isAnswering) = (true, true)
    case .body: break
    case .end: isArriving = false
    }
    context.fireChannelRead(wrapInboundOut(part))
  }

  /// Passes on what waits, up to the next request that has to wait.
  private func advance(_ context: ChannelHandlerContext) {
    guard !waiting.isEmpty else { return }
    var hasPassed = false
    loop: while let next = waiting.first {
      switch next {
      case .part(let part):
        guard canPass(part) else { break loop }
        if case .head = part { waitingRequests -= 1 }
        waiting.removeFirst()
        pass(part, context)
        hasPassed = true
      case .closedInput:
        waiting.removeFirst()
        context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
      case .error(let error):
        waiting.removeFirst()
        context.fireErrorCaught(error)
      case .tooLargeHeader:
        guard !isAnswering else { break loop }
        waiting.removeAll()
        refuse(context)
      }
    }
    if hasPassed { context.fireChannelReadComplete() }
    if waiting.isEmpty, isReadWanted {
      isReadWanted = false
      context.read()
    }
  }

  /// Answers that the header is too large. The rest of it is read: else the kernel would reset the connection, and
  /// the client would not see the answer.
  private func refuse(_ context: ChannelHandlerContext) {
    isOver = true
    let problem = Problem(
      .requestHeaderFieldsTooLarge, "too_large",
      "a request's header has at most \(Self.maximumHeader) bytes and \(Self.maximumFields) fields",
      headers: [.connection: "close"])
    let body = ByteBuffer(string: problem.json.text)
    var head = HTTPResponse(status: problem.status, headerFields: problem.headers)
    head.headerFields[.contentType] = "application/problem+json"
    head.headerFields[.contentLength] = "\(body.readableBytes)"
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.write(wrapOutboundOut(.body(body)), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    context.close(mode: .output, promise: nil)
    context.eventLoop.assumeIsolated().scheduleTask(in: Self.farewell) { self.end(context) }
  }

  private func end(_ context: ChannelHandlerContext) {
    isOver = true
    waiting.removeAll()
    context.triggerUserOutboundEvent(ConnectionWatch.End(), promise: nil)
  }
}
