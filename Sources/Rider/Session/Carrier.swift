package import Bluetooth
import Domain
import Encoding
import MQTT
import StepProtocol
import SystemIO

/// How a rider's commands get to the vehicle.
package enum Via: Equatable, Sendable {
  /// By the network; and by Bluetooth too, if the network has brought no answer after that time: connecting by
  /// Bluetooth interrupts the scan that looks for the rider's step.
  case auto(RadioSpec?, after: Duration = .milliseconds(500))
  case network
  case bluetooth(RadioSpec)

  /// The radio of a link, if there may be one.
  package var radio: RadioSpec? {
    switch self {
    case .auto(let radio, _): radio
    case .network: nil
    case .bluetooth(let radio): radio
    }
  }

  /// How long it may take until the vehicle is heard, where a link was not asked for.
  static let hearingTime = Duration.seconds(4)
  /// How long a link that failed again is left alone: each attempt interrupts the scan for beacons.
  static let pause = Duration.milliseconds(500)
  /// How long a link may take to come about, where the network may still answer.
  static let searchTime = Duration.seconds(8)
}

/// Neither way leads to the vehicle.
struct NoWay: Failure {
  let network: any Failure
  let link: any Failure

  var exitStatus: ExitStatus { network.exitStatus }
  var description: String { "\(network.description); by Bluetooth: \(link.description)" }
  var hint: String? { network.hint ?? link.hint }
  var details: [JSON.Member] { network.details }
}

/// Carries one rider's commands to one vehicle, and its statements back.
///
/// No call waits. One thread uses it.
protocol Carrier: AnyObject {
  /// `the broker` or `Bluetooth`, for details.
  var name: String { get }
  /// Readable while `next` has something.
  var descriptor: Int32 { get }
  func next() throws -> CarrierEvent?
  /// - Returns: false if it will not be sent.
  func send(_ command: SealedCommand, to step: StepID) -> Bool
  func close()
}

enum CarrierEvent {
  case connected
  case message(Message)
  /// Nothing follows.
  case lost(any Failure)
}

/// The network.
final class BrokerCarrier: Carrier {
  private let connection: MQTTConnection
  private let topic: TopicPrefix

  init(_ connection: MQTTConnection, _ topic: TopicPrefix) { (self.connection, self.topic) = (connection, topic) }

  let name = "the broker"
  var descriptor: Int32 { connection.descriptor }

  func next() throws -> CarrierEvent? {
    switch try connection.next(until: .now) {
    case .connected: .connected
    case .message(let message): .message(message)
    case .disconnected(let error): .lost(error)
    case .acknowledged, nil: nil
    }
  }

  func send(_ command: SealedCommand, to step: StepID) -> Bool {
    connection.publish(topic: topic.setPosition(step), payload: command.bytes, retain: false) != nil
  }

  func close() { connection.close() }
}

/// A link to the vehicle: finds it, connects, and sends. Everything slow is done on a thread of its own.
final class LinkCarrier: Carrier {
  private enum Event: Sendable {
    case connected(heard: Instant)
    case message(Message)
    case lost(LinkError)
  }

  private struct Order: Sendable {
    let frame: LinkFrame
    let key: AnswerKey
  }

  private let events: Mailbox<Event>
  private let orders: Mailbox<Order>
  private let thread: WorkerThread
  private let key: EncryptionKey
  /// When the vehicle was heard, and when there was a link; nil before.
  private(set) var times: (heard: Instant, linked: Instant)?

  /// Begins to look for the vehicle.
  ///
  /// - Parameters:
  ///   - hearing: how long it may take until the vehicle is heard, each time.
  ///   - patience: how long it may take until there is a link.
  ///   - pause: how long to wait before.
  init(
    _ radio: RadioSpec, to access: RiderAccess, hearing: Duration, patience: Duration, after pause: Duration = .zero
  ) throws {
    let (events, orders, thread) = (try Mailbox<Event>(), try Mailbox<Order>(), try WorkerThread())
    let (key, topic, stop) = (access.encryptionKey, access.topic, thread.stop)
    (self.events, self.orders, self.thread, self.key) = (events, orders, thread, key)
    try thread.start {
      guard (try? waitReadable([stop.number], until: .now + pause)) != [true] else { return }
      LinkCarrier.run(radio, key, topic, events, orders, hearing: hearing, until: .now + patience, stop)
    }
  }

  let name = "Bluetooth"
  var descriptor: Int32 { events.descriptor }

  func next() -> CarrierEvent? {
    switch events.take() {
    case .connected(let heard):
      times = (heard, .now)
      return .connected
    case .message(let message): return .message(message)
    case .lost(let error): return .lost(error)
    case nil: return nil
    }
  }

  func send(_ command: SealedCommand, to step: StepID) -> Bool {
    guard let brief = command.brief(for: key) else { return false }
    orders.post(Order(frame: LinkFrame(.command, of: step, brief), key: command.answerKey))
    return true
  }

  func close() { thread.close(within: .milliseconds(250)) }

  /// Runs on the thread.
  private static func run(
    _ radio: RadioSpec, _ key: EncryptionKey, _ topic: TopicPrefix, _ events: Mailbox<Event>,
    _ orders: Mailbox<Order>, hearing: Duration, until end: Instant, _ stop: Interruption
  ) {
    do throws(LinkError) {
      let (channel, heard) = try connect(radio, key, hearing: hearing, until: end, stop)
      events.post(.connected(heard: heard))
      try serve(channel, orders, topic, events, stop)
    } catch {
      events.post(.lost(error))
    }
  }

  /// Tries until the time is over. The error is that of the last attempt.
  private static func connect(
    _ radio: RadioSpec, _ key: EncryptionKey, hearing: Duration, until end: Instant, _ stop: Interruption
  ) throws(LinkError) -> (LinkChannel, heard: Instant) {
    while true {
      do throws(LinkError) {
        let search = LinkSearch { frame in LinkName.accepted(at: WallClock.seconds, of: key).contains(frame) }
        return try search.connect(with: radio, until: min(end, .now + hearing), interruption: stop)
      } catch {
        switch error {
        case .noConnection, .outOfReach, .ended: if end - .seconds(1) <= .now { throw error }
        case .radio, .noAdapter, .notHeard, .notTaken, .stuck, .system: throw error
        }
      }
    }
  }

  /// Sends and receives until the link ends.
  private static func serve(
    _ channel: LinkChannel, _ orders: Mailbox<Order>, _ topic: TopicPrefix, _ events: Mailbox<Event>,
    _ stop: Interruption
  ) throws(LinkError) {
    var keys: [AnswerKey] = []
    var frames = Frames(longest: LinkFrame.longest)
    while true {
      let ready: [Bool]
      let look = try channel.isSent() ? nil : Instant.now + LinkChannel.pause
      do { ready = try waitReadable([channel.descriptor, orders.descriptor, stop.number], until: look) } catch {
        throw .system(error)
      }
      if ready[2] { throw .radio(.interrupted) }
      while let order = orders.take() {
        keys.append(order.key)
        try channel.write(order.frame.bytes)
      }
      guard ready[0] else { continue }
      frames.append(try channel.read())
      do throws(MalformedMessage) {
        while let bytes = try frames.next() {
          guard let frame = try LinkFrame(bytes), frame.kind == .answer, let step = frame.step else { continue }
          // The newest question is the likeliest.
          guard let status = keys.reversed().lazy.compactMap({ $0.open(frame.payload) }).first else { continue }
          events.post(.message(Message(topic: topic.status(step), payload: status, isRetained: false)))
        }
      } catch {
        throw .ended
      }
    }
  }
}
