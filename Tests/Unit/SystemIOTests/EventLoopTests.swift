import Glibc
import Synchronization
import SystemIO
import TestSupport
import Testing

@Suite("Event loop", .timeLimit(.minutes(1))) struct EventLoopTests {
  let loop: EventLoop

  init() throws { loop = try EventLoop() }

  private func drain(_ descriptor: Int32) -> Int {
    var bytes = [UInt8](repeating: 0, count: 64)
    return read(descriptor, &bytes, bytes.count)
  }

  private struct Stopped: Error, Equatable { let reason: String }

  // MARK: - Timers

  @Test(
    "timers run in the order of their times, whatever the order they were made in, never early", arguments: [1, 2, 3])
  func order(seed: UInt64) throws {
    var random = SplitMix(seed)
    let start = Instant.now
    let times = (0..<200).map { _ in start + .microseconds(Int.random(in: 0...40_000, using: &random)) }
    var ran: [Instant] = []
    for time in times {
      loop.schedule(at: time) {
        #expect(Instant.now >= time)
        ran.append(time)
        if ran.count == times.count { self.loop.stop() }
      }
    }
    try loop.run()
    #expect(ran == times.sorted())
  }

  @Test("timers for the same time run in the order in which they were made")
  func sameTime() throws {
    let time = Instant.now + .milliseconds(5)
    var ran: [Int] = []
    for number in 0..<20 { loop.schedule(at: time) { ran.append(number) } }
    loop.schedule(at: time) { loop.stop() }
    try loop.run()
    #expect(ran == Array(0..<20))
  }

  @Test("a tick every five milliseconds keeps its rhythm, and the loop sleeps in between")
  func rhythm() throws {
    let start = Instant.now
    let processor = processorTime()
    // A thread that sleeps until the same times: a machine that makes the loop late makes this one late, too.
    let sleeper = try Mailbox<Int>()
    try DetachedThread.start {
      var late = 0
      for number in 0..<100 {
        let time = start + .milliseconds(5 * number)
        usleep(useconds_t(max(0, Instant.now.duration(to: time).inSeconds * 1e6)))
        if time.duration(to: .now) > .milliseconds(5) { late += 1 }
      }
      sleeper.post(late)
    }
    var late = 0
    var ticks = 0
    func tick(at time: Instant) {
      loop.schedule(at: time) {
        if time.duration(to: .now) > .milliseconds(5) { late += 1 }
        ticks += 1
        ticks == 100 ? loop.stop() : tick(at: time + .milliseconds(5))
      }
    }
    tick(at: start)
    try loop.run()
    #expect(start.duration(to: .now) >= .milliseconds(495))
    #expect(try waitReadable([sleeper.descriptor], until: .now + .seconds(30)) == [true])
    // A loop that is a quarter of a second late once is late for half of the ticks.
    #expect(late < 50 + sleeper.take()!)
    #expect(processorTime() - processor < 0.25)
  }

  @Test("what a timer schedules for the past has its turn, but does not keep descriptors waiting")
  func pastTimers() throws {
    let pipe = try Pipe()
    try pipe.writer.write([1])
    var rounds = 0
    func again() {
      loop.schedule(at: .now - .seconds(1)) {
        rounds += 1
        again()
      }
    }
    again()
    try loop.watch(pipe.reader.number) { loop.stop() }
    try loop.run()
    #expect(rounds <= 2)
  }

  @Test("a timer that was cancelled does not run, not even by a handler for the same time")
  func cancelledTimers() throws {
    let time = Instant.now + .milliseconds(2)
    var ran: [String] = []
    var second: Registration?
    loop.schedule(at: time) {
      ran.append("first")
      second?.cancel()
    }
    second = loop.schedule(at: time) { ran.append("second") }
    let third = loop.schedule(at: .now) { ran.append("third") }
    third.cancel()
    third.cancel()
    loop.schedule(at: time + .milliseconds(2)) { loop.stop() }
    try loop.run()
    #expect(ran == ["first"])
    #expect(second?.isActive == false)
  }

  // MARK: - Descriptors

  @Test("a descriptor is told of again until it is read")
  func levelTriggered() throws {
    let pipe = try Pipe()
    let number = pipe.reader.number
    try pipe.writer.write([1])
    var calls = 0
    try loop.watch(number) {
      calls += 1
      if calls == 3 {
        _ = drain(number)
        loop.schedule(at: .now + .milliseconds(10)) { loop.stop() }
      }
    }
    try loop.run()
    #expect(calls == 3)
  }

  @Test("a descriptor whose other end is closed is ready")
  func hangup() throws {
    let reader = try Pipe().takeReader()
    let number = reader.number
    var registration: Registration?
    registration = try loop.watch(number) {
      #expect(drain(number) == 0)
      registration?.cancel()
      loop.stop()
    }
    try loop.run()
  }

  @Test("a file is always readable, beside what is waited for")
  func files() throws {
    let file = try Descriptor.open("/proc/self/exe", O_RDONLY)
    var calls = 0
    let registration = try loop.watch(file.number) { calls += 1 }
    loop.schedule(at: .now + .milliseconds(5)) {
      registration.cancel()
      calls = 0
      loop.schedule(at: .now + .milliseconds(5)) { loop.stop() }
    }
    try loop.run()
    #expect(calls == 0)
  }

  @Test("what is no descriptor is told")
  func closed() {
    #expect(throws: SystemError("wait for descriptor", "-1", code: EBADF)) { try loop.watch(-1) {} }
  }

  @Test("a handler that cancels another, ready at the same moment, keeps it from being called")
  func cancellingOthers() throws {
    let one = try Pipe()
    let other = try Pipe()
    try one.writer.write([1])
    try other.writer.write([1])
    var registrations: [Registration] = []
    var calls = 0
    for number in [one.reader.number, other.reader.number] {
      registrations.append(
        try loop.watch(number) {
          calls += 1
          for registration in registrations { registration.cancel() }
        })
    }
    loop.schedule(at: .now + .milliseconds(10)) { loop.stop() }
    try loop.run()
    #expect(calls == 1)
  }

  @Test("a number that the kernel gives again does not get the events of the one before it")
  func reusedNumber() throws {
    let first = try Pipe()
    try first.writer.write([1])
    // Duplicates of one pipe: both are ready in the same round.
    let numbers = [dup(first.reader.number), dup(first.reader.number)]
    var registrations: [Registration] = []
    let fresh = try Pipe()
    var calls = 0
    for (index, number) in numbers.enumerated() {
      registrations.append(
        try loop.watch(number) {
          calls += 1
          for registration in registrations { registration.cancel() }
          // The other number now names a pipe with nothing in it.
          let other = numbers[1 - index]
          #expect(dup2(fresh.reader.number, other) == other)
          try loop.watch(other) { Issue.record("an empty pipe was called readable") }
        })
    }
    loop.schedule(at: .now + .milliseconds(10)) { loop.stop() }
    try loop.run()
    for number in numbers { close(number) }
    #expect(calls == 1)
  }

  @Test("a descriptor may be watched twice, and each registration is its own")
  func twice() throws {
    let pipe = try Pipe()
    try pipe.writer.write([1])
    var calls = [0, 0]
    var first: Registration?
    first = try loop.watch(pipe.reader.number) {
      calls[0] += 1
      first?.cancel()
    }
    try loop.watch(pipe.reader.number) {
      calls[1] += 1
      if calls[1] == 3 { loop.stop() }
    }
    try loop.run()
    #expect(calls == [1, 3])
  }

  @Test("handlers add others, which are called")
  func adding() throws {
    let pipe = try Pipe()
    let number = pipe.reader.number
    try pipe.writer.write([1])
    var registration: Registration?
    registration = try loop.watch(number) {
      registration?.cancel()
      try loop.watch(number) { loop.stop() }
    }
    try loop.run()
  }

  @Test("what a handler holds is let go of when it is cancelled, and when its timer has run")
  func ownership() throws {
    final class Thing {}
    var thing: Thing? = Thing()
    weak let held = thing
    let timer = loop.schedule(at: .now) { [thing] in
      _ = thing
      loop.stop()
    }
    let watch = try loop.watch(STDIN_FILENO) { [thing] in _ = thing }
    watch.cancel()
    thing = nil
    #expect(held != nil)
    try loop.run()
    #expect(held == nil)
    #expect(!timer.isActive)
  }

  // MARK: - The run

  @Test("a handler's error ends the run and is rethrown, and the loop can be run again")
  func errors() throws {
    let pipe = try Pipe()
    try pipe.writer.write([1])
    let registration = try loop.watch(pipe.reader.number) { throw Stopped(reason: "descriptor") }
    #expect(throws: Stopped(reason: "descriptor")) { try loop.run() }
    registration.cancel()
    loop.schedule(at: .now) { throw Stopped(reason: "timer") }
    #expect(throws: Stopped(reason: "timer")) { try loop.run() }
    loop.schedule(at: .now) { loop.stop() }
    try loop.run()
  }

  @Test("a loop that was stopped does not begin, and nothing runs after a stop")
  func stopping() throws {
    loop.stop()
    try loop.run()
    var ran: [Int] = []
    let now = Instant.now
    for number in 0..<3 {
      loop.schedule(at: now) {
        ran.append(number)
        loop.stop()
      }
    }
    try loop.run()
    #expect(ran == [0])
    try loop.run()
    #expect(ran == [0, 1])
  }

  // MARK: - Messages and signals

  @Test("10,000 messages from four threads all arrive, those of each thread in order, while timers keep running")
  func mailbox() throws {
    let mailbox = try Mailbox<(thread: Int, number: Int)>()
    for thread in 0..<4 {
      try DetachedThread.start { for number in 0..<2500 { mailbox.post((thread, number)) } }
    }
    var next = [0, 0, 0, 0]
    var ticks = 0
    func tick() {
      loop.schedule(at: .now) {
        ticks += 1
        tick()
      }
    }
    tick()
    try loop.receive(mailbox) { message in
      #expect(message.number == next[message.thread])
      next[message.thread] += 1
      if next == [2500, 2500, 2500, 2500] { loop.stop() }
    }
    try loop.run()
    // At most 32 messages a round.
    #expect(ticks >= 10_000 / 32)
    #expect(mailbox.take() == nil)
  }

  @Test("a mailbox is readable while there is a message in it")
  func readiness() throws {
    let mailbox = try Mailbox<Int>()
    #expect(try waitReadable([mailbox.descriptor], until: .now) == [false])
    for number in 0..<3000 { mailbox.post(number) }
    for number in 0..<3000 {
      #expect(try waitReadable([mailbox.descriptor], until: .now) == [true])
      #expect(mailbox.take() == number)
    }
    #expect(mailbox.take() == nil)
    #expect(try waitReadable([mailbox.descriptor], until: .now) == [false])
  }

  @Test("a handler that cancels its mailbox gets no more messages, and they are kept")
  func cancelledMailbox() throws {
    let mailbox = try Mailbox<Int>()
    for number in 0..<3 { mailbox.post(number) }
    var received: [Int] = []
    var registration: Registration?
    registration = try loop.receive(mailbox) {
      received.append($0)
      registration?.cancel()
      loop.stop()
    }
    try loop.run()
    #expect(received == [0])
    #expect(mailbox.take() == 1)
  }

  @Test("a manual interruption ends a wait on another thread, and every later one")
  func manualInterruption() throws {
    let interruption = try Interruption.manual()
    let ended = try Mailbox<[Bool]>()
    try DetachedThread.start {
      ended.post((try? waitReadable([interruption.number], until: .now + .seconds(30))) ?? [])
    }
    #expect(!interruption.isPending)
    loop.schedule(at: .now + .milliseconds(5)) { interruption.interrupt() }
    try loop.receive(ended) {
      #expect($0 == [true])
      loop.stop()
    }
    try loop.run()
    interruption.interrupt()
    #expect(interruption.isPending)
  }

  @Test("a signal is a source")
  func signals() throws {
    let mailbox = try Mailbox<String>()
    // A thread of its own, so that the signal is blocked and pending there alone.
    try DetachedThread.start {
      do {
        let loop = try EventLoop()
        let interruption = try Interruption()
        loop.schedule(at: .now + .milliseconds(5)) { pthread_kill(pthread_self(), SIGTERM) }
        try loop.watch(interruption.number) { loop.stop() }
        try loop.run()
        mailbox.post("\(Interruption.pending ?? 0)")
      } catch {
        mailbox.post("\(error)")
      }
    }
    #expect(try waitReadable([mailbox.descriptor], until: .now + .seconds(30)) == [true])
    #expect(mailbox.take() == "\(SIGTERM)")
  }

  private func processorTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
