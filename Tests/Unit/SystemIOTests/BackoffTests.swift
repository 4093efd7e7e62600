import SystemIO
import Testing

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

  @Test("begins anew only after a connection that lasted")
  func anew() {
    var backoff = Backoff()
    for _ in 0..<3 { _ = backoff.next(afterLasting: .zero, chance: 0) }
    #expect(backoff.next(afterLasting: .seconds(30), chance: 0) == .seconds(4))
    #expect(backoff.next(afterLasting: .seconds(31), chance: 0) == .milliseconds(500))
  }
}
