import Domain
import OBD
import SystemIO

/// Reads the vehicle's speed on a separate thread, because a serial line and a name in a network may be slow to open. A
/// connection that has failed is made again after a second.
final class SpeedReader: Sendable {
  enum Event: Sendable {
    /// Km/h, and when the vehicle was asked.
    case speed(Int, asked: Instant)
    /// The adapter has no speed now, and why.
    case noSpeed(String)
    /// There is no connection to the adapter, and why.
    case lost(String)
  }

  private static let pause = Duration.seconds(1)

  let events: Mailbox<Event>
  private let thread: WorkerThread

  init(_ address: OBDAddress) throws {
    events = try Mailbox()
    thread = try WorkerThread()
    try thread.start { [events, stop = thread.stop] in
      repeat {
        do {
          let connection = try OBDConnection(address, stop)
          while true { events.post(Event(try connection.next())) }
        } catch let error as any Failure where error.isInterruption {
          return
        } catch {
          events.post(.lost("\(error)"))
        }
      } while (try? waitReadable([stop.number], until: .now + Self.pause)) == [false]
    }
  }
}

extension SpeedReader.Event {
  fileprivate init(_ event: OBDDialogue.Event) {
    switch event {
    case .speed(let speed, let asked): self = .speed(speed, asked: asked)
    case .noSpeed(let text): self = .noSpeed("the adapter tells no speed: \(text)")
    }
  }
}
