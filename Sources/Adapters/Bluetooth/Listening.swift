import Domain
import Ranging
import SystemIO

/// A live radio's clock: it starts with the wall clock's time and follows the monotonic clock.
struct LiveClock {
  let start = UnixTime(microseconds: WallClock.microseconds)
  private let startInstant = Instant.now

  var now: UnixTime { time(.now) }

  func time(_ instant: Instant) -> UnixTime {
    let elapsed = startInstant.duration(to: instant).components
    return UnixTime(
      microseconds: start.microseconds + elapsed.seconds * 1_000_000 + elapsed.attoseconds / 1_000_000_000_000)
  }

  func instant(_ time: UnixTime) -> Instant {
    startInstant + .microseconds(time.microseconds &- start.microseconds)
  }
}

/// Reports that were heard but not delivered yet: one event may carry several.
struct HeardQueue {
  private var reports = AdvertisingReports()
  private var waiting = ArraySlice<Advertisement>()

  /// Adds the reports of an HCI event, if it has any.
  ///
  /// Of a truncated event, it adds the complete reports. That is not an error: a capture may limit the bytes of each
  /// packet, and the next event does not depend on this one.
  mutating func add(_ event: Span<UInt8>, heardAt time: UnixTime) {
    _ = reports.read(event: event) { address, rssi, data in
      waiting.append(Advertisement(time: time, address: address, rssi: rssi, copying: data))
    }
  }

  mutating func add(_ advertisement: Advertisement) { waiting.append(advertisement) }

  var first: Advertisement? { waiting.first }

  mutating func popFirst() -> Advertisement? { waiting.popFirst() }
}

/// How long a wait may take before the state of the radio, and of this program, is checked.
let longestWait = Duration.milliseconds(500)

/// The time of hearing for a report that is read now.
///
/// After a program was suspended (SIGSTOP), or nobody read its output, old reports wait in its socket. Taken as new, an
/// old report would prove where somebody was, not where they are. So a late report gets the time at which there was
/// last nothing to read, which is never later than the true time.
///
/// - Parameter emptied: when there was last nothing to read.
func timeOfHearing(_ now: Instant, emptied: Instant) -> Instant {
  emptied.duration(to: now) > .seconds(1) ? emptied : now
}

/// Waits until there is something to read, or a signal has arrived.
///
/// - Returns: false when the deadline passed.
/// - Throws: `RadioError.interrupted`, even when there is something to read.
func waitReadable(
  _ descriptor: Int32, of radio: String, until deadline: Instant?, _ interruption: Interruption?
) throws(RadioError) -> Bool {
  let ready: [Bool]
  do {
    // poll(2) ignores a descriptor of -1.
    ready = try waitReadable([descriptor, interruption?.number ?? -1], until: deadline)
  } catch {
    throw .lost(radio: radio, reason: error.reason)
  }
  if ready[1] { throw .interrupted }
  return ready[0]
}

/// Makes sure that there is nothing to read.
///
/// The clock is read before the check. If the program is suspended in between, what arrives meanwhile is not taken for
/// new: see `timeOfHearing`.
///
/// - Returns: since when that is known; nil if there is something to read.
func timeOfSilence(
  _ descriptor: Int32, of radio: String, _ interruption: Interruption?
) throws(RadioError) -> Instant? {
  let now = Instant.now
  return try waitReadable(descriptor, of: radio, until: now, interruption) ? nil : now
}
