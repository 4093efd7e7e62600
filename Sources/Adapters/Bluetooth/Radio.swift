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
/// Events come in the order in which they happened. Whoever asks `next(until:)` for one interval after the other gets
/// the same answers from a replay as from life: what was heard in the interval, then `.deadline`.
///
/// ## Waiting
///
/// `next` waits in the kernel only, and hands on a report as soon as it has arrived. A signal ends every wait with
/// `RadioError.interrupted`, if the radio was opened with an `Interruption`. One wait cannot be ended: the C library's
/// for a name server, when an H4 stream is opened by a host's name.
///
/// ## Threads
///
/// A radio has no threads. One thread opens it, asks it and closes it.
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
  /// - Throws: `RadioError`; after any but `.interrupted` no event follows.
  func next(until deadline: UnixTime?) throws(RadioError) -> RadioEvent

  /// Stops listening and releases the device or file.
  func close()
}

/// What a radio tells.
package enum RadioEvent: Hashable, Sendable {
  /// An advertisement, of a beacon or of another device.
  case heard(Advertisement)
  /// The deadline has passed, and everything that was heard until then has been told. The time is that of the radio's
  /// clock: for a capture, the next record's, which may be much later after a gap. Nothing that is told later was heard
  /// earlier, unless the capture's clock was set back.
  case deadline(UnixTime)
  /// The capture has no more records; its clock stopped at this time.
  case ended(UnixTime)
}
