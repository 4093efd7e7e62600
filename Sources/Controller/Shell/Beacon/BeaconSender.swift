import Bluetooth
import Synchronization
import SystemIO

/// Has an adapter send the beacons of a plan, until it is closed or a signal arrives.
///
/// The adapter is asked on a thread of its own: one that does not answer must not hold up a motion. One that is lost
/// is tried again, after half a second at first and half a minute at last.
final class BeaconSender: Sendable {
  enum Event: Equatable, Sendable {
    /// The beacons are on the air.
    case sending
    /// They are not, or no longer. The same reason is told once in a row.
    case failed(RadioError)
  }

  let plan: BeaconPlan
  private let events = Mutex<[Event]>([])
  private let arrival: Wakeup
  /// Signaled to end the thread, and by the thread at its end; never cleared.
  let stop: Wakeup
  let ended: Wakeup

  /// Tries the adapter, and starts the thread, which tries on.
  ///
  /// - Throws: `RadioError` for what will not mend itself while this process runs.
  init(_ plan: BeaconPlan, _ interruption: Interruption) throws {
    self.plan = plan
    arrival = try Wakeup()
    stop = try Wakeup()
    ended = try Wakeup()
    try BeaconThread.start(self, interruption)
  }

  /// Readable while `next` has an event: lent to `waitReadable`.
  var descriptor: Int32 { arrival.number }

  func next() -> Event? {
    events.withLock { events in
      if events.count <= 1 { arrival.clear() }
      return events.isEmpty ? nil : events.removeFirst()
    }
  }

  /// From the thread.
  func tell(_ event: Event) {
    events.withLock { events in
      events.append(event)
      arrival.signal()
    }
  }

  /// Takes the beacons off the air, and waits for that: 2 s at most, which a controller that answers never takes.
  func close() {
    stop.signal()
    _ = try? waitReadable([ended.number], until: .now + .seconds(2))
  }
}
