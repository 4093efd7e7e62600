/// Work that brings something up to date. Runs follow one another, and whoever asks while one runs shares the next one,
/// which sees everything that was written before they asked.
actor SharedRun {
  private let work: @Sendable () async throws -> Void
  /// The last run.
  private var last: Task<Void, any Error>?
  /// The one that has not begun yet.
  private var waiting: Task<Void, any Error>?

  init(_ work: @escaping @Sendable () async throws -> Void) { self.work = work }

  func run() async throws {
    if let waiting { return try await waiting.value }
    let task = Task { [last] in
      _ = await last?.result
      waiting = nil
      try await work()
    }
    (last, waiting) = (task, task)
    try await task.value
  }
}
