import SystemIO

/// How long a wait may take until it is looked at what became of the radio, and of this program.
let longestWait = Duration.milliseconds(500)

/// When something was heard that is read only now.
///
/// A program that was stopped (SIGSTOP), or whose output nobody takes, finds in its socket what was heard long ago.
/// Taken for the present it would be a proof of where somebody was: it counts as heard when there was last nothing to
/// read, which is never too late.
///
/// - Parameter emptied: when that was.
func timeOfHearing(_ now: ContinuousClock.Instant, emptied: ContinuousClock.Instant) -> ContinuousClock.Instant {
  emptied.duration(to: now) > .seconds(1) ? emptied : now
}

/// Waits until there is something to read, or a signal has arrived.
///
/// - Returns: false when the deadline passed.
/// - Throws: `RadioError.interrupted`, also when there is something to read as well.
func waitReadable(
  _ descriptor: Int32, of radio: String, until deadline: ContinuousClock.Instant?, _ interruption: Interruption?
) throws(RadioError) -> Bool {
  let ready: [Bool]
  do {
    // poll(2) passes over a descriptor of -1.
    ready = try waitReadable([descriptor, interruption?.number ?? -1], until: deadline)
  } catch {
    throw .lost(radio: radio, reason: error.reason)
  }
  if ready[1] { throw .interrupted }
  return ready[0]
}
