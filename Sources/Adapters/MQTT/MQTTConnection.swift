import CMosquitto
import Glibc
import SystemIO

/// A connection to a broker: MQTT 3.1.1, clean session; publishes with QoS 1.
///
/// **Threads.** libmosquitto and its sockets live on a thread of their own. Only `close` waits for it, and not for
/// long. Every method may be called from any thread; only `next` blocks.
///
/// **Latency.** The thread starts in `init` and sends CONNECT, SUBSCRIBE and whatever was published by then without
/// waiting for CONNACK (MQTT 3.1.1, 3.1.4), so a cold request and its answer take one round trip beyond TCP's and
/// TLS's. TCP_NODELAY is on, and acknowledgements are not delayed (TCP_QUICKACK): a broker with Nagle's algorithm
/// on, mosquitto's default, does not cost 40 ms an exchange.
///
/// **What a publish is worth.** `acknowledged` says that the broker has the message. It does not say that anyone
/// received it, nor that the access list let it pass: MQTT 3.1.1 does not tell. When the connection ends
/// (`disconnected`), a message that was not acknowledged may or may not have arrived. A message without the retain
/// flag is never sent again. Of the retained ones, the latest of each topic is published on every later connection,
/// acknowledged or not.
///
/// **A lost connection** is noticed at once when the other side closes it, else within twice the keep-alive.
/// `Reconnecting.never` then ends. `forever` says `disconnected` and connects again, with the same client identifier,
/// after every error: the other side may mend it. A broker that is away is tried at least every 1.5 s, with jitter; one
/// that refuses, or is refused, after 0.5 s, doubling to 30 s. The TLS files are read for each attempt, so that renewed
/// certificates are used.
///
/// **What is received** with QoS 1 is acknowledged to the broker when it arrives here, not when it is fetched. A
/// message that the screen refuses costs neither a copy nor a wake-up, and over TLS one read of the socket takes dozens
/// of small ones. A message with a payload above the limit, or that finds the queue full, is dropped and counted in
/// `discarded`. libmosquitto has a whole packet in memory before it can be dropped, so over TLS a packet above another
/// limit ends the connection while it is being read. (In the clear, only a broker's `max_packet_size` bounds it.)
///
/// libmosquitto has the process ignore SIGPIPE.
package final class MQTTConnection: Sendable {
  package enum Reconnecting: Sendable { case never, forever }

  package enum Event: Equatable, Sendable {
    /// CONNACK arrived: what was published from here on, and before, is with the broker or on the way.
    case connected
    /// The connection ended, or an attempt failed. With `Reconnecting.never` nothing follows.
    case disconnected(MQTTError)
    case message(Message)
    /// The first PUBACK. See above for its meaning.
    case acknowledged(PublishID)
  }

  /// The best quality of service that subscriptions ask for (MQTT 3.1.1, 4.3).
  package enum Quality: Int32, Sendable {
    /// At most once. Only a full queue of the broker loses a message while the TCP connection lasts. QoS 1 saves none
    /// from the end of a clean session, and a broker sends no more than 20 ahead of their PUBACKs.
    case zero
    /// At least once.
    case one
  }

  /// Whether a message is worth being received: its topic, which ends with 0, and its payload, both lent for the call.
  ///
  /// It is called on the connection's thread and holds that up.
  package typealias Screen = @Sendable (_ topic: UnsafePointer<CChar>, _ payload: UnsafeRawBufferPointer) -> Bool

  package struct Limits: Sendable {
    /// Bytes of a message that is received.
    package var payload = 16384
    /// Bytes of a packet that comes over TLS, roughly: above it the connection ends.
    package var packet = 1 << 20
    /// Messages that were received and not fetched yet.
    package var queuedMessages = 128
    /// Whether a full queue stops reading, so that what comes waits with the broker. If not, it is dropped here.
    package var holdsBack = false
    /// Messages that were published and wait for the connection.
    package var queuedPublications = 64

    package init() {}
  }

  /// Messages that were received and dropped.
  package struct Discarded: Equatable, Sendable {
    /// Their payload was above the limit.
    package internal(set) var oversized = 0
    /// The queue was full.
    package internal(set) var overflowing = 0
    /// How often reading stopped because the queue was full; nothing was dropped then.
    package internal(set) var heldBack = 0
  }

  private let exchange: Exchange

  /// Begins to load what TLS needs, 1.6 ms of a command that is to connect.
  package static func loadAhead() { TLSContext.loadAhead() }

  /// Starts to connect, and returns at once.
  ///
  /// - Parameters:
  ///   - clientID: 1 to 23 letters and digits (MQTT 3.1.1, 3.1.3.1); a broker drops the older of two clients with
  ///     the same one.
  ///   - keepAlive: whole seconds, at least 5.
  ///   - subscriptions: topic filters, subscribed on each connection.
  ///   - screen: asked about each message, before anything else is done with it.
  ///   - will: what the broker publishes when it loses the connection without DISCONNECT (MQTT 3.1.1, 3.1.2.5).
  ///   - patience: for TCP, TLS and CONNACK together, with each address of the host; longer is `timedOut`. Name
  ///     resolution has its own limits, resolv.conf(5)'s.
  ///   - preparation: of this broker's TLS, for the first attempt.
  /// - Throws: `unusableFile` when a TLS file cannot be read; its content is checked while connecting, and
  ///   `disconnected` tells what is wrong. `system` when the process is out of descriptors or threads.
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
  /// - Returns: nil when the message will not be sent: the connection has ended for good, or it is lost and the message
  ///   not retained, or too many messages wait.
  @discardableResult
  package func publish(topic: String, payload: [UInt8], retain: Bool) -> PublishID? {
    precondition(!topic.isEmpty && mosquitto_pub_topic_check(topic) == MOSQ_ERR_SUCCESS.code, "not a topic name")
    return exchange.publish(topic: topic, payload: payload, isRetained: retain)
  }

  /// The next event, in the order of events.
  ///
  /// - Returns: nil when the deadline passed, or when no event can follow: the connection was closed, or ended for good
  ///   and its last event was fetched.
  package func next(until deadline: ContinuousClock.Instant?) throws(MQTTError) -> Event? {
    do {
      return try exchange.next(until: deadline)
    } catch {
      throw .system(error)
    }
  }

  /// Readable while `next` would return an event at once: lent to `waitReadable`, not to be read or closed.
  package var descriptor: Int32 { exchange.events.number }

  package var discarded: Discarded { exchange.discarded }

  /// Ends the connection with DISCONNECT. Nothing is received after it.
  ///
  /// It waits neither for acknowledgements nor for messages that were not sent yet. Who needs to know that a message
  /// arrived waits for `acknowledged` first.
  ///
  /// Idempotent. It waits until the socket is closed, at most a quarter of a second. A thread that is held up longer,
  /// as by a silent name server, ends later and frees its resources itself.
  package func close() { exchange.close() }

  /// 22 random letters and digits, which tell nothing about the client.
  package static func randomClientID() -> String {
    let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
    return String(decoding: (0..<22).map { _ in alphabet[.random(in: alphabet.indices)] }, as: UTF8.self)
  }
}

/// A message that was received.
package struct Message: Hashable, Sendable {
  package let topic: String
  package let payload: [UInt8]
  /// The broker had stored the message when the subscription was made. It tells how things were, not that something was
  /// sent just now (MQTT 3.1.1, 3.3.1.3).
  package let isRetained: Bool

  package init(topic: String, payload: [UInt8], isRetained: Bool) {
    self.topic = topic
    self.payload = payload
    self.isRetained = isRetained
  }
}

/// A message that a broker keeps ready, and publishes with QoS 1 and the retain flag when the connection is lost.
package struct Will: Hashable, Sendable {
  package let topic: String
  package let payload: [UInt8]

  package init(topic: String, payload: [UInt8]) {
    self.topic = topic
    self.payload = payload
  }
}

/// Names one call of `MQTTConnection.publish`, for as long as the process lives.
package struct PublishID: Hashable, Comparable, Sendable {
  let number: UInt64

  package init(_ number: UInt64) { self.number = number }

  package static func < (left: PublishID, right: PublishID) -> Bool { left.number < right.number }
}
