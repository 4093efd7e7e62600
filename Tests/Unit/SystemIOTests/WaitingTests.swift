import Foundation
import SystemIO
import Testing

@Suite("Waiting") struct WaitingTests {
  @Test("ends at the deadline and not before it, and says that nothing is ready")
  func deadline() throws {
    let wakeup = try Wakeup()
    let end = Instant.now + .microseconds(20_500)
    #expect(try waitReadable([wakeup.number], until: end) == [false])
    #expect(Instant.now >= end)
    #expect(try waitReadable([wakeup.number], until: .now - .seconds(5)) == [false])
  }

  @Test("another thread ends it, and what was signalled stays so until it is cleared")
  func wakeup() throws {
    let wakeup = try Wakeup()
    let other = try Wakeup()
    Thread.detachNewThread { wakeup.signal() }
    #expect(try waitReadable([other.number, wakeup.number], until: .now + .seconds(60)) == [false, true])
    #expect(try waitReadable([wakeup.number], until: .now) == [true])
    wakeup.clear()
    #expect(try waitReadable([wakeup.number], until: .now) == [false])
  }

  @Test("a descriptor that is closed at the other end is ready, so that nobody waits for it for ever")
  func hangup() throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    close(ends[1])
    let reader = Descriptor(adopting: ends[0])
    #expect(try waitReadable([reader.number], until: .now + .seconds(60)) == [true])
    var buffer = [UInt8](repeating: 0, count: 4)
    #expect(try buffer.withUnsafeMutableBytes { try reader.read(into: $0) } == 0)
  }

  @Test("durations are rounded towards the future, so that a wait does not end early and spin")
  func rounding() {
    #expect(Duration.microseconds(1).roundedUpToMilliseconds == 1)
    #expect(Duration.milliseconds(5).roundedUpToMilliseconds == 5)
    #expect(Duration.milliseconds(-5).roundedUpToMilliseconds == 0)
    #expect(Duration.milliseconds(1500).inSeconds == 1.5)
  }
}

@Suite("Backoff")
struct BackoffTests {
  private func waits(_ count: Int, chance: Double) -> [Duration] {
    var backoff = Backoff()
    return (0..<count).map { _ in backoff.next(afterLasting: .zero, chance: chance) }
  }

  @Test("doubles from half a second to half a minute, less up to a half of it")
  func doubling() {
    #expect(waits(8, chance: 0) == [0.5, 1, 2, 4, 8, 16, 30, 30].map { .seconds($0) })
    #expect(waits(8, chance: 1) == [0.25, 0.5, 1, 2, 4, 8, 15, 15].map { .seconds($0) })
  }

  @Test("begins again only after a connection that lasted")
  func anew() {
    var backoff = Backoff()
    for _ in 0..<3 { _ = backoff.next(afterLasting: .zero, chance: 0) }
    #expect(backoff.next(afterLasting: .seconds(30), chance: 0) == .seconds(4))
    #expect(backoff.next(afterLasting: .seconds(31), chance: 0) == .milliseconds(500))
  }
}

@Suite("What is done meanwhile") struct MeanwhileTests {
  private struct Refused: Error {}

  @Test("its result is waited for, as often as one likes, and its error is thrown there")
  func result() throws {
    let sum = try Meanwhile { (1...100).reduce(0, +) }
    #expect(try sum.result() == 5050)
    #expect(try sum.result() == 5050)
    let refused = try Meanwhile { () throws(Refused) -> Int in throw Refused() }
    #expect(throws: Refused.self) { try refused.result() }
  }

  @Test("it has ended when nobody waits for it any more")
  func end() throws {
    let done = try Mailbox<Bool>()
    func begin() throws {
      _ = try Meanwhile {
        usleep(50_000)
        done.post(true)
      }
    }
    try begin()
    #expect(done.take() == true)
  }
}
