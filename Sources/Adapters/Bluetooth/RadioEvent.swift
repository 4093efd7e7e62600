package import Ranging
package import Domain

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
