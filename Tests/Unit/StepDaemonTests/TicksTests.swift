import StepController
import SystemIO
import Testing

@testable import StepDaemon

@Suite("Ticks")
struct TicksTests {
  let start = Instant.now
  let length = Duration.milliseconds(MotionProfile.tick)

  @Test("keep step, however long a turn takes within a tick")
  func inStep() {
    var ticks = Ticks(at: start)
    let due = (0..<5).map { ticks.next(at: start + length * $0 + .milliseconds(3 * $0)) }
    #expect(due == (1...5).map { start + length * $0 })
  }

  @Test("that were missed are not made up for", arguments: [1, 7, 50_000])
  func missed(count: Int) {
    var ticks = Ticks(at: start)
    let late = start + length * count + .milliseconds(1)
    #expect(ticks.next(at: late) == late + length)
    #expect(ticks.next(at: late + length) == late + length * 2)
  }
}
