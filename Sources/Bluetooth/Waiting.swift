import SystemIO

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
