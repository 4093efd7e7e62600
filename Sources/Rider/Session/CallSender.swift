package import Bluetooth
import Domain
package import SystemIO

/// Calls a vehicle with a radio: sends each frame only in its slot, and nothing after the last frame.
///
/// The radio is used on a separate thread, so an adapter that does not answer delays nothing else.
package final class CallSender {
  package enum Event: Sendable {
    /// The first frame is on the air.
    case calling
    /// The radio cannot, or can no longer, call. The next call tries it again.
    case failed(RadioError)
  }

  package let events: Mailbox<Event>
  private let calls: Mailbox<Call>
  private let thread: WorkerThread

  /// Starts the thread.
  package init(_ radio: RadioSpec) throws(SystemError) {
    events = try Mailbox()
    calls = try Mailbox()
    thread = try WorkerThread()
    try thread.start { [events, calls, end = thread.stop] in
      var sending = Sending(radio, events, calls, end)
      sending.run()
    }
  }

  /// Starts a call, in place of the one before.
  package func call(_ call: Call) { calls.post(call) }

  /// Ends the call. Does not wait.
  package func stop() { thread.stop.interrupt() }

  /// Ends the call, and waits until nothing is on the air.
  package func close() { thread.close() }
}

/// Runs on the thread.
private struct Sending {
  private let radio: RadioSpec
  private let events: Mailbox<CallSender.Event>
  private let calls: Mailbox<Call>
  private let end: Interruption
  private var caller: (any Caller)?

  init(
    _ radio: RadioSpec, _ events: Mailbox<CallSender.Event>, _ calls: Mailbox<Call>, _ end: Interruption
  ) {
    (self.radio, self.events, self.calls, self.end) = (radio, events, calls, end)
  }

  mutating func run() {
    var call: Call?
    while true {
      while let newer = calls.take() { call = newer }
      var due: Instant?
      do throws(RadioError) {
        if let now = call?.frame(at: .now) {
          let isFirst = caller == nil
          if isFirst { caller = try radio.caller(interruption: end) }
          try caller?.call(now.frame)
          if isFirst { events.post(.calling) }
          due = now.until
        } else {
          call = nil
          caller?.close()
          caller = nil
        }
      } catch {
        caller?.close()
        (caller, call) = (nil, nil)
        if error == .interrupted { return }
        events.post(.failed(error))
      }
      guard let ready = try? waitReadable([calls.descriptor, end.number], until: due), !ready[1] else {
        caller?.close()
        return
      }
    }
  }
}
