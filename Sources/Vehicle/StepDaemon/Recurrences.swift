import SystemIO

/// Which of the failures that come again and again are worth a line in the log: the first of each reason, then one
/// after a second, one two seconds later, and so on in pauses that double to an hour. A broker that is away for a day
/// is then 35 lines. 80,000 would wear out a memory card, and push riders' records out of a journal that is limited.
struct Recurrences {
  private struct Recurrence {
    var written: Instant
    var pause: Duration
    var unwritten = 0
  }

  private static let pauses = (first: Duration.seconds(1), longest: Duration.seconds(3600))
  /// The most reasons that are kept: whoever answers in the broker's place may invent some.
  private static let capacity = 32

  private var recurrences: [String: Recurrence] = [:]

  /// - Returns: how many times this reason came since it was written last, this time included; nil if it is not to be
  ///   written.
  mutating func note(_ reason: String, at now: Instant) -> Int? {
    guard var recurrence = recurrences[reason] else {
      if recurrences.count == Self.capacity, let oldest = recurrences.min(by: { $0.value.written < $1.value.written }) {
        recurrences[oldest.key] = nil
      }
      recurrences[reason] = Recurrence(written: now, pause: Self.pauses.first)
      return 1
    }
    recurrence.unwritten += 1
    defer { recurrences[reason] = recurrence }
    guard recurrence.written.duration(to: now) >= recurrence.pause else { return nil }
    let count = recurrence.unwritten
    recurrence = Recurrence(written: now, pause: min(recurrence.pause * 2, Self.pauses.longest))
    return count
  }

  /// It has worked for so long that the next failure is another matter.
  mutating func forget() { recurrences = [:] }
}
