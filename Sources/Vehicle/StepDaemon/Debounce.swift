import SystemIO

/// Debounces an input: it becomes inactive at once, and active only after it has been active for `delay`.
struct Debounce {
  /// How long it must be active.
  let delay: Duration
  /// Nil while it is lost, and until its first reading.
  private(set) var isActive: Bool?
  /// When it counts as active, if it does not change before.
  private(set) var due: Instant?

  init(_ delay: Duration) { self.delay = delay }

  /// Takes the input's present level; nil if it cannot be read.
  mutating func take(_ level: Bool?, at time: Instant) {
    if level == true {
      if isActive != true, due == nil { due = time + delay }
      settle(at: time)
    } else {
      (isActive, due) = (level, nil)
    }
  }

  /// Applies a delay that is over.
  mutating func settle(at time: Instant) {
    guard let due, due <= time else { return }
    (isActive, self.due) = (true, nil)
  }
}
