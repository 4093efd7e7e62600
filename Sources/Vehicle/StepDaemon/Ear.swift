import Bluetooth
import Domain
import Ranging
import StepController
import Synchronization
import SystemIO

/// The frames that riders' devices are asked to send now. The loop changes the set, and the ears look up every frame in
/// it.
final class AwaitedFrames: Sendable {
  private let frames = Mutex<Set<UUID>>([])

  func add(_ new: [UUID]) { frames.withLock { $0.formUnion(new) } }
  func remove(_ old: [UUID]) { frames.withLock { $0.subtract(old) } }
  func contains(_ frame: UUID) -> Bool { frames.withLock { $0.contains(frame) } }
}

/// An adapter at a step that listens for riders' devices, until it is closed.
///
/// Its own thread ignores all frames that are not awaited, so strangers' frames cost the loop nothing. A lost adapter
/// is tried again, after half a second at first, and at most half a minute later on.
final class Ear: Sendable {
  enum Event: Sendable {
    case listening
    /// It does not listen, or no longer listens. The same reason is not reported twice in a row.
    case failed(RadioError)
    /// An awaited frame, its RSSI in dBm, and when it was heard.
    case heard(UUID, Int8, Instant)
  }

  let step: StepID
  let radio: RadioSpec
  let events: Mailbox<Event>
  private let stop: Interruption
  private let ended: Wakeup

  /// Starts the thread.
  init(_ step: StepID, _ radio: RadioSpec, _ awaited: AwaitedFrames) throws {
    self.step = step
    self.radio = radio
    events = try Mailbox()
    stop = try Interruption.manual()
    ended = try Wakeup()
    let listening = Listening(radio, awaited, events, stop)
    try DetachedThread.start { [ended] in
      listening.run()
      ended.signal()
    }
  }

  /// Ends the scan, and waits for that: 2 s at most, which a working controller never needs.
  func close() {
    stop.interrupt()
    _ = try? waitReadable([ended.number], until: .now + .seconds(2))
  }
}

/// Runs on the thread: listens, and tries again after a failure.
private final class Listening {
  private let radio: RadioSpec
  private let awaited: AwaitedFrames
  private let events: Mailbox<Ear.Event>
  private let stop: Interruption
  private var backoff = Backoff()
  /// The last reported reason.
  private var told: RadioError?

  init(_ radio: RadioSpec, _ awaited: AwaitedFrames, _ events: Mailbox<Ear.Event>, _ stop: Interruption) {
    (self.radio, self.awaited, self.events, self.stop) = (radio, awaited, events, stop)
  }

  func run() {
    while true {
      var begun: Instant?
      do throws(RadioError) {
        let radio = try radio.open(interruption: stop)
        defer { radio.close() }
        begun = .now
        told = nil
        events.post(.listening)
        while true {
          guard case .heard(let advertisement) = try radio.next(until: nil) else { continue }
          guard let rssi = advertisement.rssi, let frame = CallFrame.read(advertisement.data), awaited.contains(frame)
          else { continue }
          // A frame that is read late counts as heard late. That can only make the frame worthless.
          events.post(.heard(frame, rssi, .now))
        }
      } catch {
        if error == .interrupted { return }
        if error != told { events.post(.failed(error)) }
        told = error
      }
      let lasted = begun?.duration(to: .now) ?? .zero
      let due = Instant.now + backoff.next(afterLasting: lasted, chance: Double.random(in: 0...1))
      if (try? waitReadable([stop.number], until: due)[0]) ?? true { return }
    }
  }
}
