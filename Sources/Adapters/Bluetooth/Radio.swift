package import Domain
package import Ranging

/// Something that hears advertisements: an adapter, a controller at the other end of a stream, or a capture.
///
/// ## Time
///
/// Each radio has a clock, and all times, deadlines included, are on it.
///
/// - A live radio's clock is the wall clock as it stood at opening, carried on by the monotonic clock: it neither
///   jumps nor runs backwards when somebody sets the time.
/// - A capture's clock is in its records: it starts with the first record, moves from one to the next as fast as they
///   can be read, and stands still while a pipe has nothing to give. It jumps where the recording clock jumped, in
///   either direction.
///
/// Events come in the order in which they happened, so that whoever asks `next(until:)` for one interval after the
/// other gets the same answers from a replay as from life: what was heard in the interval, then `.deadline`.
///
/// ## Waiting
///
/// `next` waits in the kernel and nowhere else; a report is handed on as soon as it has arrived. A signal ends
/// every wait at once with `RadioError.interrupted`, if the radio was opened with an `Interruption`; only a name server
/// that is asked for the host of an H4 stream is waited for by the C library.
///
/// ## Threads
///
/// There are none inside. One thread opens a radio, asks it and closes it.
///
/// ## Closing
///
/// `close` may be called at any time and as often as one likes, and going out of scope does the same. A live radio
/// stops its scan first and waits for the controller to confirm it (1 s at most), also after an error or a signal.
/// After closing, `next` must not be called.
package protocol Radio: AnyObject {
  /// When the radio's clock started: at opening, or with a capture's first record. A capture without any record
  /// starts and ends at 1970-01-01T00:00:00Z.
  var start: UnixTime { get }

  /// Waits for the next thing to tell.
  ///
  /// - Parameter deadline: on the radio's clock, inclusive; nil waits for as long as it takes.
  /// - Throws: `RadioError`; after any but `.interrupted` there is nothing more to come.
  func next(until deadline: UnixTime?) throws(RadioError) -> RadioEvent

  /// Stops listening and lets go of the device or file.
  func close()
}

/// What a radio has to tell next.
package enum RadioEvent: Hashable, Sendable {
  /// An advertisement, of a beacon or of anything else.
  case heard(Advertisement)
  /// The deadline has passed, and everything heard until then has been told. The time is what the radio's clock
  /// shows: of a capture, the time of the record that comes next, which may be far off after a gap. Nothing that is
  /// told later was heard before it, unless the capture's clock was set back.
  case deadline(UnixTime)
  /// The capture has no more records; its clock stopped at this time.
  case ended(UnixTime)
}
