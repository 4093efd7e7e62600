package import Domain
package import Ranging

/// Something that hears advertisements: an adapter, a controller at the other end of a stream, or a capture.
///
/// ## Time
///
/// Each radio has a clock, and all times, deadlines included, are on it.
///
/// - A live radio's clock starts with the wall clock's time at opening and then follows the monotonic clock. It neither
///   jumps nor runs backwards when someone sets the time.
/// - A capture's clock is in its records. It starts with the first record, moves on as fast as records can be read, and
///   stands still while a pipe is empty. It jumps where the recording clock jumped, in either direction.
///
/// Events come in the order in which they happened. A caller that asks `next(until:)` for one interval after the other
/// gets the same answers from a replay as from a live radio: what was heard in the interval, then `.deadline`.
///
/// ## Waiting
///
/// `next` waits only in the kernel, and delivers a report as soon as it has arrived. A signal ends every wait with
/// `RadioError.interrupted`, if the radio was opened with an `Interruption`. One wait cannot be interrupted: the C
/// library's wait for a name server, when an H4 stream is opened by a host name.
///
/// ## Threads
///
/// A radio has no threads of its own. One thread opens, uses and closes it.
///
/// ## Closing
///
/// `close` may be called at any time and more than once; `deinit` does the same. A live radio stops its scan first and
/// waits for the controller to confirm it (1 s at most), also after an error or a signal. After closing, `next` must
/// not be called.
package protocol Radio: AnyObject {
  /// When the radio's clock started: at opening, or with a capture's first record. A capture without any record
  /// starts and ends at 1970-01-01T00:00:00Z.
  var start: UnixTime { get }

  /// Waits for the next event.
  ///
  /// - Parameter deadline: on the radio's clock, inclusive; nil waits without limit.
  /// - Throws: `RadioError`; after any error except `.interrupted` no event follows.
  func next(until deadline: UnixTime?) throws(RadioError) -> RadioEvent

  /// Stops listening and releases the device or file.
  func close()
}

/// An event of a radio.
package enum RadioEvent: Hashable, Sendable {
  /// An advertisement, of a beacon or of another device.
  case heard(Advertisement)
  /// The deadline has passed, and everything that was heard until then has been delivered. The time is the radio
  /// clock's: for a capture, the time of the next record, which may be much later after a gap. Later events were not
  /// heard earlier, unless the capture's clock was set back.
  case deadline(UnixTime)
  /// The capture has no more records; its clock stopped at this time.
  case ended(UnixTime)
}
