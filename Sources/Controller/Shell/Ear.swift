import Bluetooth
import Domain
import Ranging
import StepController
import Synchronization
import SystemIO

/// The frames that riders' devices are called for now. The loop changes them, and the ears look every frame up.
final class AwaitedFrames: Sendable {
  private let frames = Mutex<Set<UUID>>([])

  func add(_ new: [UUID]) { frames.withLock { $0.formUnion(new) } }
  func remove(_ old: [UUID]) { frames.withLock { $0.subtract(old) } }
  func contains(_ frame: UUID) -> Bool { frames.withLock { $0.contains(frame) } }
}

/// An adapter at a step that listens for riders' devices, until it is closed.
///
/// It has a thread of its own, which passes over whatever is not awaited: what strangers send costs the loop nothing.
/// An adapter that is lost is tried again, after half a second at first and half a minute at last.
final class Ear: Sendable {
  enum Event: Sendable {
    case listening
    /// It does not listen, or no longer. The same reason is told once in a row.
    case failed(RadioError)
    /// An awaited frame, its RSSI in dBm, and when it was heard.
    case heard(UUID, Int8, ContinuousClock.Instant)
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

  /// Ends the scan, and waits for that: 2 s at most, which a controller that answers never takes.
  func close() {
    stop.interrupt()
    _ = try? waitReadable([ended.number], until: .now + .seconds(2))
  }
}

/// The thread's: listens, and tries again when that fails.
private final class Listening {
  private let radio: RadioSpec
  private let awaited: AwaitedFrames
  private let events: Mailbox<Ear.Event>
  private let stop: Interruption
  private var backoff = Backoff()
  /// Why it failed last, as it was told.
  private var told: RadioError?

  init(_ radio: RadioSpec, _ awaited: AwaitedFrames, _ events: Mailbox<Ear.Event>, _ stop: Interruption) {
    (self.radio, self.awaited, self.events, self.stop) = (radio, awaited, events, stop)
  }

  func run() {
    while true {
      var begun: ContinuousClock.Instant?
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
          // A frame that was read late counts as heard late, which can only make it worthless.
          events.post(.heard(frame, rssi, .now))
        }
      } catch {
        if error == .interrupted { return }
        if error != told { events.post(.failed(error)) }
        told = error
      }
      let lasted = begun?.duration(to: .now) ?? .zero
      let due = ContinuousClock.now + backoff.next(afterLasting: lasted, chance: Double.random(in: 0...1))
      if (try? waitReadable([stop.number], until: due)[0]) ?? true { return }
    }
  }
}
