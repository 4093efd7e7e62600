/// Debounces an input: it becomes inactive at once, and active only after it has been active for `delay`.
struct Debounce {
  typealias Instant = ContinuousClock.Instant

  /// For how long it must be active.
  let delay: Duration
  /// Nil while it is lost, and until it is known for the first time.
  private(set) var isActive: Bool?
  /// When it counts as active, if nothing comes in between.
  private(set) var due: Instant?

  init(_ delay: Duration) { self.delay = delay }

  /// Takes what the input reads from now on; nil when it cannot be read.
  mutating func take(_ level: Bool?, at time: Instant) {
    if level == true {
      if isActive != true, due == nil { due = time + delay }
      settle(at: time)
    } else {
      (isActive, due) = (level, nil)
    }
  }

  /// Takes note of the time.
  mutating func settle(at time: Instant) {
    guard let due, due <= time else { return }
    (isActive, self.due) = (true, nil)
  }
}
