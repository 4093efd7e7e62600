import Domain
import StepProtocol
import Testing

@testable import Operator

/// A vehicle that writes events, and can be put back to what it was.
private struct Writer {
  let key = SigningKey()
  let vehicle = UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")!
  var end: EventPlace?
  var time: Int64 = 0

  mutating func write(skipping skipped: Int64 = 0) -> (VehicleEvent, EventDigest) {
    time += 1
    let event = VehicleEvent(
      vehicle: vehicle, sequence: (end?.sequence ?? 0) + 1 + skipped, previous: end?.digest ?? .random(),
      .init(.began, time: time))
    let digest = EventDigest(of: Array(event.signed(by: key).utf8))
    end = EventPlace(event.sequence, digest)
    return (event, digest)
  }
}

@Suite("A vehicle's chain of events") struct EventChainTests {
  private var writer = Writer()
  private var chain = EventChain()

  @Test("what comes in order follows, and what comes twice is known")
  mutating func order() {
    let events = (0..<5).map { _ in writer.write() }
    for event in events { #expect(chain.take(event.0, event.1) == .follows([])) }
    for event in events.reversed() { #expect(chain.take(event.0, event.1) == .known) }
    #expect(chain.end?.sequence == 5)
    #expect(chain.count == 5)
  }

  @Test("what overtakes waits, and fits when the one before it has come")
  mutating func reordered() {
    let events = (0..<3).map { _ in writer.write() }
    #expect(chain.take(events[1].0, events[1].1) == .waits)
    #expect(chain.take(events[2].0, events[2].1) == .waits)
    for event in events { #expect(chain.take(event.0, event.1) == .follows([])) }
  }

  @Test("what never comes is missing")
  mutating func dropped() {
    let events = (0..<5).map { _ in writer.write() }
    _ = chain.take(events[0].0, events[0].1)
    #expect(chain.take(events[4].0, events[4].1) == .waits)
    #expect(chain.accept(events[4].0, events[4].1) == [.missing(2...4)])
    // Should it come after all, it is seen that it is not new.
    #expect(chain.take(events[1].0, events[1].1) == .follows([.wentBack(to: 1, from: 5)]))
  }

  @Test("of a vehicle whose first events are gone, the first that is there says so")
  mutating func begins() {
    let events = (0..<3).map { _ in writer.write() }
    #expect(chain.take(events[2].0, events[2].1) == .waits)
    #expect(chain.accept(events[2].0, events[2].1) == [.missing(1...2)])
  }

  @Test("what the vehicle says that it could not write is not taken for what was kept back")
  mutating func unwritten() {
    let first = writer.write()
    let later = writer.write(skipping: 3)
    _ = chain.take(first.0, first.1)
    #expect(chain.take(later.0, later.1) == .follows([.unwritten(2...4)]))
  }

  @Test("a vehicle that was put back tells a number twice, with another content, and that shows")
  mutating func rollback() {
    var events = (0..<3).map { _ in writer.write() }
    let old = writer.end
    events += (0..<3).map { _ in writer.write() }
    for event in events { _ = chain.take(event.0, event.1) }
    writer.end = old
    let again = writer.write()
    #expect(again.0.sequence == 4)
    #expect(chain.take(again.0, again.1) == .follows([.wentBack(to: 3, from: 6)]))
    let next = writer.write()
    #expect(chain.take(next.0, next.1) == .follows([]))
    // The other branch is known.
    #expect(chain.take(events[4].0, events[4].1) == .known)
  }

  @Test("a vehicle that was put back to before all that is here shows too")
  mutating func rollbackBeyond() {
    _ = (0..<3).map { _ in writer.write() }
    let old = writer.end
    let first = writer.write()
    _ = chain.accept(first.0, first.1)
    writer.end = old
    let again = writer.write()
    #expect(chain.take(again.0, again.1) == .waits)
    #expect(chain.accept(again.0, again.1) == [.wentBack(to: 3, from: 4)])
  }

  @Test("a vehicle that lost its events begins again, and that shows")
  mutating func lost() {
    for _ in 0..<3 {
      let event = writer.write()
      _ = chain.take(event.0, event.1)
    }
    writer.end = nil
    let event = writer.write()
    #expect(chain.take(event.0, event.1) == .follows([.beganAgain(after: 3)]))
  }
}
