import StepProtocol
import Testing

@Suite("When a token counts")
struct ValidityTests {
  @Test(
    "from its first second, or a leeway before it, until its end, which does not count",
    arguments: [
      (99, 0, .notYet), (100, 0, .now), (199, 0, .now), (200, 0, .over), (69, 30, .notYet), (70, 30, .now),
      (200, 30, .over), (0, 0, .notYet),
    ] as [(Int64, Int64, Validity.State)])
  func states(_ now: Int64, _ leeway: Int64, _ state: Validity.State) {
    #expect(Validity(from: 100, until: 200).state(at: now, leeway: leeway) == state)
  }
}
