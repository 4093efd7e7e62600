public import Domain
import FileFormats
import MQTT
public import StepProtocol
public import SystemIO

/// A server's connection to the vehicles' broker, for notices, or for what vehicles report. When it has ended, another
/// one has to be made.
public final class BrokerConnection: Sendable {
  enum Purpose {
    /// Messages that find no room here are dropped.
    case toPublish
    /// When there is no room here, reading stops.
    case toListen
  }

  public enum Event: Sendable {
    case connected
    /// A message of a topic that was subscribed to. What the broker retained comes first.
    ///
    /// A broker acknowledges even a message that its access list forbids (MQTT 3.1.1, 3.3.5), so only a notice that
    /// comes back proves that the broker has it.
    case message(topic: String, payload: [UInt8])
    /// One more of the notices that were sent has arrived. The vehicle's topic may be unknown to the broker.
    case acknowledged
    /// Nothing follows.
    case ended(any Error)
  }

  /// How many events one `wait` returns.
  private static let mostEvents = 1024

  private let connection: MQTTConnection
  private let wakeup: Wakeup

  /// Begins to connect, and returns at once.
  init(_ broker: Broker, _ purpose: Purpose) throws {
    var limits = MQTTConnection.Limits()
    limits.queuedMessages = 1024
    limits.holdsBack = purpose == .toListen
    wakeup = try Wakeup()
    // Another connection must not repeat what this one has sent: a newer notice may have come from elsewhere. With
    // QoS 1 a broker sends 20 messages ahead, lets a few wait, and drops what else many vehicles report at once.
    connection = try MQTTConnection(
      broker: broker, subscriptions: [], quality: .zero, reconnecting: .never, limits: limits)
  }

  /// Subscribes to a topic, or to a filter. The broker's refusal ends the connection.
  public func subscribe(to topic: String) { connection.subscribe(topic) }

  public func publish(_ text: String, to topic: String) {
    connection.publish(topic: topic, payload: Array(text.utf8), retain: true)
  }

  /// Waits for events, or for `wake`.
  ///
  /// - Returns: the events, in order, and whether it was woken.
  public func wait(until deadline: Instant) throws -> (events: [Event], isWoken: Bool) {
    let isWoken = try waitReadable([connection.descriptor, wakeup.number], until: deadline)[1]
    if isWoken { wakeup.clear() }
    var events: [Event] = []
    while events.count < Self.mostEvents, let event = try connection.next(until: .now) {
      switch event {
      case .connected: events.append(.connected)
      case .message(let message): events.append(.message(topic: message.topic, payload: message.payload))
      case .acknowledged: events.append(.acknowledged)
      case .disconnected(let error): events.append(.ended(error))
      }
    }
    return (events, isWoken)
  }

  /// Ends a `wait` that has begun, or the next one. Any thread may call it.
  public func wake() { wakeup.signal() }

  public func close() { connection.close() }
}

/// Writes notices with the operator's keys as they were when it was made.
public struct NoticeWriter: Sendable {
  private let place: OperatorPlace
  private let keys: OperatorPlace.Keys
  private let eventKey: EncryptionKey
  private let now: Int64

  init(_ place: OperatorPlace, now: Int64) throws {
    self.place = place
    self.now = try place.issueTime(now).now
    keys = try place.keys()
    eventKey = try place.eventKey().encryptionKey
  }

  /// A notice for a vehicle.
  ///
  /// - Parameter acknowledged: the last event that is stored; nil for the last one in the operator's folder.
  public func notice(
    for vehicle: UUID, number: Int64, revoked: [Notice.Revocation], acknowledged: EventPlace? = nil
  ) throws -> String {
    let notice = Notice(
      vehicle: vehicle, sequence: number, issued: now, keys: keys.counting, revoked: revoked, eventKey: eventKey,
      acknowledged: try acknowledged ?? place.archive(of: vehicle).last()?.place)
    let text = notice.signed(by: keys.signingNotices)
    guard text.utf8.count <= Notice.maximumSize else { throw LedgerError.noticeTooLarge(notice.revoked.count) }
    return text
  }
}
