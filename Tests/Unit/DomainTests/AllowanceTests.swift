import Domain
import Testing

@Suite("An allowance")
struct AllowanceTests {
  @Test("allows a burst, and then one in each interval")
  func burst() {
    var allowance = Allowance(burst: 3, interval: 10)
    let first = (0..<5).count { _ in allowance.take(at: 100) }
    #expect(first == 3)
    let (early, due, next) = (allowance.take(at: 109), allowance.take(at: 110), allowance.take(at: 119))
    #expect((early, due, next) == (false, true, false))
    #expect(!allowance.isWhole(at: 139))
    #expect(allowance.isWhole(at: 140))
    let later = (0...1_000).count { allowance.take(at: 140 + Double($0)) }
    #expect(later == 3 + 100)
  }

  @Test("saves up no more than a burst, and a refused use costs nothing")
  func saving() {
    var allowance = Allowance(burst: 3, interval: 10)
    let all = allowance.take(3, at: 0)
    let (more, late) = (allowance.take(3, at: 29), allowance.take(3, at: 30))
    let after = (0..<5).count { _ in allowance.take(at: 1_000) }
    #expect((all, more, late, after) == (true, false, true, 3))
  }

  @Test("loses nothing when the clock is set back")
  func clock() {
    var allowance = Allowance(burst: 2, interval: 10)
    let (first, second) = (allowance.take(at: 1_000), allowance.take(at: 0))
    let (third, later) = (allowance.take(at: 0), allowance.take(at: 10))
    #expect((first, second) == (true, true))
    #expect((third, later) == (false, true))
  }

  @Test("for each key counts the uses in any window")
  func window() {
    var allowances = Allowances<String>(2, in: 60)
    allowances.note("ann", at: 0)
    allowances.note("ann", at: 30)
    #expect(allowances.isUsedUp(by: "ann", at: 59))
    #expect(!allowances.isUsedUp(by: "bob", at: 59))
    #expect(!allowances.isUsedUp(by: "ann", at: 60))
    allowances.note("ann", at: 60)
    #expect(allowances.isUsedUp(by: "ann", at: 89))
    #expect(!allowances.isUsedUp(by: "ann", at: 90))
  }

  @Test("remembers a bounded number of keys, and forgets the oldest")
  func manyKeys() {
    var allowances = Allowances<Int>(3, in: 60_000, capacity: 256)
    for key in 0..<256 { for _ in 0..<3 { allowances.note(key, at: Int64(key)) } }
    #expect((0..<256).allSatisfy { allowances.isUsedUp(by: $0, at: 1_000) })
    allowances.note(256, at: 1_000)
    #expect((0..<256).filter { !allowances.isUsedUp(by: $0, at: 1_000) } == [0])
    #expect(!(0..<256).contains { allowances.isUsedUp(by: $0, at: 61_000) })
  }
}
