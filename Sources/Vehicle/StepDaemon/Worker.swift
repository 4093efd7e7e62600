import SystemIO

/// A thread that does jobs one after the other, for a thread that must not wait for the jobs.
final class Worker<Job: Sendable>: Sendable {
  private let jobs: Mailbox<Job>
  private let thread: WorkerThread

  /// - Parameter work: called on the thread with all waiting jobs, the oldest first; there is at least one.
  init(_ work: @escaping @Sendable ([Job]) -> Void) throws(SystemError) {
    jobs = try Mailbox()
    thread = try WorkerThread()
    try thread.start { [jobs, end = thread.stop] in
      var isEnding = false
      while !isEnding {
        isEnding = (try? waitReadable([jobs.descriptor, end.number], until: nil)[1]) ?? true
        var waiting: [Job] = []
        while let job = jobs.take() { waiting.append(job) }
        if !waiting.isEmpty { work(waiting) }
      }
    }
  }

  func post(_ job: Job) { jobs.post(job) }

  /// Takes no more jobs, and waits until all posted jobs are done.
  func finish(within time: Duration) { thread.close(within: time) }
}
