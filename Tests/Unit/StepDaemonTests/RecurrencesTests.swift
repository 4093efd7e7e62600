import SystemIO
import Testing

@testable import StepDaemon

@Suite("Failures that come again and again")
struct RecurrencesTests {
  private let start = Instant.now

  @Test("each reason is written at once, and then in pauses that double")
  func steps() {
    var recurrences = Recurrences()
    var written: [(second: Int, count: Int)] = []
    for second in 0..<200 {
      let now = start + .seconds(second)
      if let count = recurrences.note("refused", at: now) { written.append((second, count)) }
      if second == 5 { #expect(recurrences.note("lost", at: now) == 1) }
    }
    #expect(written.map(\.second) == [0, 1, 3, 7, 15, 31, 63, 127])
    #expect(written.map(\.count) == [1, 1, 2, 4, 8, 16, 32, 64])
  }

  @Test("a day of them is 35 lines")
  func day() {
    var recurrences = Recurrences()
    let lines = (0..<86_400).compactMap { recurrences.note("refused", at: start + .seconds($0)) }
    #expect(lines.count == 35)
    // From then on each hour.
    #expect(lines.suffix(20).allSatisfy { $0 == 3600 })
  }

  @Test("a peer that invents reasons takes no memory")
  func invented() {
    var recurrences = Recurrences()
    for number in 0..<1_000 { #expect(recurrences.note("\(number)", at: start + .milliseconds(number)) == 1) }
    // The newest are known.
    #expect(recurrences.note("999", at: start + .seconds(1)) == nil)
    #expect(recurrences.note("0", at: start + .seconds(1)) == 1)
  }

  @Test("after a good time a failure is new")
  func forgotten() {
    var recurrences = Recurrences()
    #expect(recurrences.note("refused", at: start) == 1)
    #expect(recurrences.note("refused", at: start) == nil)
    recurrences.forget()
    #expect(recurrences.note("refused", at: start) == 1)
  }
}
