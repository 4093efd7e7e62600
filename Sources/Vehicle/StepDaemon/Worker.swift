import SystemIO

/// A thread that does jobs one after the other, for a thread that must not wait for the jobs.
final class Worker<Job: Sendable>: Sendable {
  private let jobs: Mailbox<Job>
  private let end: Interruption
  private let ended: Wakeup

  /// - Parameter work: called on the thread with all waiting jobs, the oldest first; there is at least one.
  init(_ work: @escaping @Sendable ([Job]) -> Void) throws(SystemError) {
    jobs = try Mailbox()
    end = try Interruption.manual()
    ended = try Wakeup()
    try DetachedThread.start { [jobs, end, ended] in
      var isEnding = false
      while !isEnding {
        isEnding = (try? waitReadable([jobs.descriptor, end.number], until: nil)[1]) ?? true
        var waiting: [Job] = []
        while let job = jobs.take() { waiting.append(job) }
        if !waiting.isEmpty { work(waiting) }
      }
      ended.signal()
    }
  }

  deinit { end.interrupt() }

  func post(_ job: Job) { jobs.post(job) }

  /// Takes no more jobs, and waits until all posted jobs are done.
  func finish(within patience: Duration) {
    end.interrupt()
    _ = try? waitReadable([ended.number], until: .now + patience)
  }
}
