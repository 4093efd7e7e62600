import SystemIO
import Testing

@Suite("A worker thread")
struct WorkerThreadTests {
  @Test("works until it is closed, and closing waits for its end")
  func close() throws {
    let thread = try WorkerThread()
    let ended = try Mailbox<Bool>()
    try thread.start { [stop = thread.stop] in ended.post((try? waitReadable([stop.number], until: nil)) == [true]) }
    #expect(ended.take() == nil)
    thread.close(within: .seconds(30))
    #expect(ended.take() == true)
  }

  @Test("is stopped when it is dropped")
  func drop() throws {
    let ended = try Mailbox<Bool>()
    try {
      let thread = try WorkerThread()
      try thread.start { [stop = thread.stop] in ended.post((try? waitReadable([stop.number], until: nil)) == [true]) }
    }()
    #expect(try waitReadable([ended.descriptor], until: .now + .seconds(30)) == [true])
    #expect(ended.take() == true)
  }

  @Test("that does not end is waited for no longer than the caller says")
  func hang() throws {
    let thread = try WorkerThread()
    let release = try Interruption.manual()
    try thread.start { _ = try? waitReadable([release.number], until: nil) }
    let begin = Instant.now
    thread.close(within: .milliseconds(50))
    #expect(begin.duration(to: .now) >= .milliseconds(50))
    release.interrupt()
  }
}
