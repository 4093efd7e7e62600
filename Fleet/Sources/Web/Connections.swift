package import HummingbirdCore
package import Logging
package import NIOCore
import Synchronization

/// The clients' connections to one listener. There are only so many, and each is ended when its client does not read.
package final class Connections: Sendable {
  /// How many connections there may be at once.
  package struct Limits: Sendable {
    let all: Int
    /// Of one network (`network(of:)`). A Unix socket has no networks.
    let each: Int

    package init(all: Int, each: Int) { (self.all, self.each) = (all, each) }
  }

  private struct State {
    var open: [ObjectIdentifier: any Channel] = [:]
    var networks: [String: Int] = [:]
    var refused = 0
    var isEnding = false
  }

  private let limits: Limits
  private let state = Mutex(State())

  package init(_ limits: Limits) { self.limits = limits }

  /// - Returns: how many are open, and how many were refused so far.
  package var counts: (open: Int, refused: Int) { state.withLock { ($0.open.count, $0.refused) } }

  /// Ends all connections now, and each later one at its begin, whatever was not sent yet.
  package func end() {
    let open = state.withLock { state in
      state.isEnding = true
      return Array(state.open.values)
    }
    for channel in open { channel.triggerUserOutboundEvent(ConnectionWatch.End(), promise: nil) }
  }

  /// - Returns: false if there are too many.
  fileprivate func admit(_ channel: any Channel, _ network: String?) -> Bool {
    state.withLock { state in
      let own = network.map { state.networks[$0, default: 0] } ?? 0
      guard !state.isEnding, state.open.count < limits.all, own < limits.each else {
        state.refused += 1
        return false
      }
      state.open[ObjectIdentifier(channel)] = channel
      if let network { state.networks[network] = own + 1 }
      return true
    }
  }

  fileprivate func remove(_ channel: any Channel, _ network: String?) {
    state.withLock { state in
      state.open[ObjectIdentifier(channel)] = nil
      guard let network, let own = state.networks[network] else { return }
      state.networks[network] = own > 1 ? own - 1 : nil
    }
  }
}

/// A listener's protocol, with its connections counted and watched.
package struct WatchedChannel<Base: ServerChildChannel>: ServerChildChannel {
  private let base: Base
  private let connections: Connections

  package init(_ base: Base, _ connections: Connections) { (self.base, self.connections) = (base, connections) }

  package func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
    // The first of all handlers: it sees the bytes that are sent, and closes without what TLS would still wait for.
    channel.eventLoop.makeCompletedFuture {
      try channel.pipeline.syncOperations.addHandler(ConnectionWatch(connections))
    }.flatMap {
      base.setup(channel: channel, logger: logger)
    }
  }

  package func handle(value: Base.Value, logger: Logger) async { await base.handle(value: value, logger: logger) }
}

/// HTTP/1.1, one request at a time. A connection may be without a request for half a minute.
package func watchedHTTP1(_ responder: @escaping HTTPChannelHandler.Responder) -> HTTP1Channel {
  let header = RequestQueue.maximumHeader
  return HTTP1Channel(
    responder: responder,
    configuration: .init(
      additionalChannelHandlers: [RequestQueue()], idleTimeout: .seconds(30),
      httpDecoderConfiguration: .init(
        maxHeaderFieldSize: header, maxHeaderListSize: header, maxHeaderFieldCount: RequestQueue.maximumFields)))
}

/// Watches one connection, below TLS: counts it, and ends it when its client takes nothing of what waits for it.
final class ConnectionWatch: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = IOData
  typealias OutboundOut = IOData

  /// Ends the connection at once.
  struct End: Sendable {}

  /// So often the connection is looked at while something waits, and so often without progress is too often: half a
  /// minute.
  static let interval = TimeAmount.seconds(10)
  static let patience = 3

  private let connections: Connections
  private var network: String?
  private var isAdmitted = false
  /// Bytes that were to be sent so far.
  private var written = 0
  /// Those of them that the kernel had taken when the connection was last looked at.
  private var taken = 0
  private var looksWithoutProgress = 0
  private var nextLook: Scheduled<Void>?
  /// The client has ended its side.
  private var isInputClosed = false

  init(_ connections: Connections) { self.connections = connections }

  func channelActive(context: ChannelHandlerContext) {
    network = context.channel.remoteAddress?.ipAddress.map(Web.network(of:))
    isAdmitted = connections.admit(context.channel, network)
    // The handlers above hear of no connection that is refused: it costs no handshake.
    if isAdmitted { context.fireChannelActive() } else { context.close(promise: nil) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    nextLook?.cancel()
    nextLook = nil
    if isAdmitted { connections.remove(context.channel, network) }
    context.fireChannelInactive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    // A client that sends no more may still read: it has until the next look, ten seconds. Without that, a request that
    // waits for a change would keep a connection whose client has gone.
    if case ChannelEvent.inputClosed? = event as? ChannelEvent {
      isInputClosed = true
      nextLook?.cancel()
      schedule(context)
    }
    context.fireUserInboundEventTriggered(event)
  }

  func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
    if event is End {
      context.close(promise: promise)
    } else {
      context.triggerUserOutboundEvent(event, promise: promise)
    }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if nextLook == nil {
      (taken, looksWithoutProgress) = (written - waiting(context), 0)
      schedule(context)
    }
    written += unwrapOutboundIn(data).readableBytes
    context.write(data, promise: promise)
  }

  /// The bytes that the kernel has not taken.
  private func waiting(_ context: ChannelHandlerContext) -> Int {
    (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
  }

  private func schedule(_ context: ChannelHandlerContext) {
    nextLook = context.eventLoop.assumeIsolated().scheduleTask(in: Self.interval) { self.look(context) }
  }

  private func look(_ context: ChannelHandlerContext) {
    nextLook = nil
    let waiting = waiting(context)
    guard waiting > 0 else {
      if isInputClosed { context.close(promise: nil) }
      return
    }
    looksWithoutProgress = written - waiting > taken ? 0 : looksWithoutProgress + 1
    taken = written - waiting
    if looksWithoutProgress < Self.patience { schedule(context) } else { context.close(promise: nil) }
  }
}
