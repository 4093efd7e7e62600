import CMosquitto
import Glibc
package import SystemIO

/// A connection to a broker: MQTT 3.1.1, clean session; publishes with QoS 1.
///
/// **Threads.** libmosquitto and its sockets have a separate thread. Only `close` waits for that thread, and only
/// briefly. Every method may be called from any thread; only `next` blocks.
///
/// **Latency.** The thread starts in `init`. It sends CONNECT, SUBSCRIBE and everything published by then without
/// waiting for CONNACK (MQTT 3.1.1, 3.1.4). So a first request and its answer take one round trip in addition to those
/// of TCP and TLS. TCP_NODELAY is on, and acknowledgements are not delayed (TCP_QUICKACK): otherwise a broker with
/// Nagle's algorithm on, mosquitto's default, would cost 40 ms per exchange.
///
/// **What an acknowledgement means.** `acknowledged` says that the broker has the message. It does not say that anyone
/// received the message, nor that the access list let it pass: MQTT 3.1.1 does not report that. When the connection
/// ends (`disconnected`), an unacknowledged message may or may not have arrived. A message without the retain flag is
/// never sent again. Of the retained messages, the latest of each topic is published on every later connection,
/// acknowledged or not.
///
/// **A lost connection** is noticed at once if the other side closes it, else within twice the keep-alive. With
/// `Reconnecting.never` the connection is then over. With `forever` it reports `disconnected` and reconnects with the
/// same client identifier, after every error, because the other side may correct its fault. An unreachable broker is
/// tried at least every 1.5 s, with jitter. After a refusal by either side, the wait is 0.5 s, doubling to 30 s. The
/// TLS files are read for each attempt, so that renewed certificates are used.
///
/// **A received message** with QoS 1 is acknowledged to the broker when it arrives here, not when it is fetched. A
/// message that the screen refuses is neither copied nor wakes a thread, and over TLS one read of the socket takes
/// dozens of small messages. A message whose payload is above the limit, or that finds the queue full, is dropped and
/// counted in `discarded`. libmosquitto reads a whole packet into memory before it can be dropped. So over TLS a packet
/// above another limit ends the connection while it is being read. (Without TLS, only the broker's `max_packet_size`
/// limits it.)
///
/// libmosquitto makes the process ignore SIGPIPE.
package final class MQTTConnection: Sendable {
  package enum Reconnecting: Sendable { case never, forever }

  package enum Event: Equatable, Sendable {
    /// CONNACK arrived: everything published before or after is with the broker or on the way.
    case connected
    /// The connection ended, or an attempt failed. With `Reconnecting.never` no event follows.
    case disconnected(MQTTError)
    case message(Message)
    /// The first PUBACK. See above for its meaning.
    case acknowledged(PublishID)
  }

  /// The quality of service that subscriptions request (MQTT 3.1.1, 4.3).
  package enum Quality: Int32, Sendable {
    /// At most once. While the TCP connection lasts, only a full queue of the broker loses a message. QoS 1 would not
    /// save a message from the end of a clean session, and a broker sends at most 20 messages ahead of their PUBACKs.
    case zero
    /// At least once.
    case one
  }

  /// Whether to receive a message: gets its zero-terminated topic and its payload, both valid only during the call.
  ///
  /// It runs on the connection's thread and delays that thread.
  package typealias Screen = @Sendable (_ topic: UnsafePointer<CChar>, _ payload: UnsafeRawBufferPointer) -> Bool

  package struct Limits: Sendable {
    /// The largest payload of a received message, bytes.
    package var payload = 16384
    /// The approximate largest packet over TLS, bytes: a larger one ends the connection.
    package var packet = 1 << 20
    /// The most messages that were received but not fetched yet.
    package var queuedMessages = 128
    /// Whether a full queue stops reading, so that messages wait with the broker. If not, they are dropped here.
    package var holdsBack = false
    /// The most published messages that wait for the connection.
    package var queuedPublications = 64

    package init() {}
  }

  /// The numbers of received messages that were dropped.
  package struct Discarded: Equatable, Sendable {
    /// The payload was above the limit.
    package internal(set) var oversized = 0
    /// The queue was full.
    package internal(set) var overflowing = 0
    /// How many times reading stopped because the queue was full; nothing was dropped then.
    package internal(set) var heldBack = 0
  }

  private let exchange: Exchange

  /// Begins to load what TLS needs. That saves 1.6 ms in a command that connects.
  package static func loadAhead() { TLSContext.loadAhead() }

  /// Begins to connect, and returns at once.
  ///
  /// - Parameters:
  ///   - clientID: 1 to 23 letters and digits (MQTT 3.1.1, 3.1.3.1). A broker drops the older of two clients with the
  ///     same identifier.
  ///   - keepAlive: whole seconds, at least 5.
  ///   - subscriptions: topic filters, subscribed on each connection.
  ///   - screen: asked about each message, before anything else is done with the message.
  ///   - will: the message that the broker publishes if the connection ends without DISCONNECT (MQTT 3.1.1, 3.1.2.5).
  ///   - patience: the time limit for TCP, TLS and CONNACK together, for each address of the host; after that,
  ///     `timedOut`. Name resolution has its own limits, from resolv.conf(5).
  ///   - preparation: the TLS preparation for this broker, for the first attempt.
  /// - Throws: `unusableFile` if a TLS file cannot be read. Its content is checked while connecting, and `disconnected`
  ///   reports a fault. `system` if the process is out of descriptors or threads.
  package init(
    broker: Broker, clientID: String = MQTTConnection.randomClientID(), keepAlive: Duration = .seconds(30),
    subscriptions: [String], quality: Quality = .one, screen: Screen? = nil, will: Will? = nil,
    reconnecting: Reconnecting, patience: Duration = .seconds(10), limits: Limits = Limits(),
    preparation: TLSPreparation? = nil
  ) throws(MQTTError) {
    precondition(!broker.host.isEmpty && broker.port != 0, "not an address")
    precondition((5...65535).contains(keepAlive.components.seconds), "not a keep-alive")
    precondition(
      subscriptions.allSatisfy { mosquitto_sub_topic_check($0) == MOSQ_ERR_SUCCESS.code }, "not a topic filter")
    try broker.tls?.checkReadable()
    do {
      exchange = try Exchange(limits: limits)
      let thread = ConnectionThread(
        exchange: exchange, reconnecting: reconnecting,
        settings: MosquittoClient.Settings(
          broker: broker, clientID: clientID, keepAlive: keepAlive, subscriptions: subscriptions,
          quality: quality, screen: screen, will: will, patience: patience, limits: limits), preparation: preparation)
      try thread.start()
    } catch {
      throw .system(error)
    }
  }

  deinit { close() }

  /// Publishes with QoS 1.
  ///
  /// - Parameter topic: a topic name, without wildcards.
  /// - Returns: nil if the message will not be sent: the connection has ended for good; or it is lost and the message
  ///   is not retained; or too many messages wait.
  @discardableResult
  package func publish(topic: String, payload: [UInt8], retain: Bool) -> PublishID? {
    precondition(!topic.isEmpty && mosquitto_pub_topic_check(topic) == MOSQ_ERR_SUCCESS.code, "not a topic name")
    return exchange.publish(topic: topic, payload: payload, isRetained: retain)
  }

  /// Subscribes on this connection alone, and before what is published later. The broker's refusal ends the connection.
  ///
  /// - Parameter filter: a topic filter.
  package func subscribe(_ filter: String) {
    precondition(mosquitto_sub_topic_check(filter) == MOSQ_ERR_SUCCESS.code, "not a topic filter")
    exchange.subscribe(filter)
  }

  /// The next event, in order.
  ///
  /// - Returns: nil if the deadline passed, or if no event can follow: the connection was closed, or it ended for good
  ///   and its last event was fetched.
  package func next(until deadline: Instant?) throws(MQTTError) -> Event? {
    do {
      return try exchange.next(until: deadline)
    } catch {
      throw .system(error)
    }
  }

  /// Readable while `next` would return an event at once. The caller may wait for it, but must not read or close it.
  package var descriptor: Int32 { exchange.events.number }

  package var discarded: Discarded { exchange.discarded }

  /// Ends the connection with DISCONNECT. Nothing is received after it.
  ///
  /// It waits neither for acknowledgements nor for unsent messages. A caller that needs to know that a message arrived
  /// must wait for `acknowledged` first.
  ///
  /// Idempotent. It waits until the socket is closed, at most a quarter of a second. A thread that is blocked longer,
  /// for example by a silent name server, ends later and frees its resources itself.
  package func close() { exchange.close() }

  /// 22 random letters and digits, which reveal nothing about the client.
  package static func randomClientID() -> String {
    let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
    return String(decoding: (0..<22).map { _ in alphabet[.random(in: alphabet.indices)] }, as: UTF8.self)
  }
}

/// A received message.
package struct Message: Hashable, Sendable {
  package let topic: String
  package let payload: [UInt8]
  /// The broker had stored the message before the subscription. It shows an earlier state, not that something was sent
  /// just now (MQTT 3.1.1, 3.3.1.3).
  package let isRetained: Bool

  package init(topic: String, payload: [UInt8], isRetained: Bool) {
    self.topic = topic
    self.payload = payload
    self.isRetained = isRetained
  }
}

/// A message that a broker stores, and publishes with QoS 1 and the retain flag when the connection is lost.
package struct Will: Hashable, Sendable {
  package let topic: String
  package let payload: [UInt8]

  package init(topic: String, payload: [UInt8]) {
    self.topic = topic
    self.payload = payload
  }
}

/// Identifies one call of `MQTTConnection.publish`, unique in the process.
package struct PublishID: Hashable, Comparable, Sendable {
  let number: UInt64

  package init(_ number: UInt64) { self.number = number }

  package static func < (left: PublishID, right: PublishID) -> Bool { left.number < right.number }
}
