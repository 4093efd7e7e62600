import Domain
import Testing

@Suite("Rider name") struct RiderNameTests {
  @Test("takes letters, digits and three signs", arguments: ["ann", "A", "0", "Ann.Smith_2-b", "-", "a.."])
  func valid(_ text: String) {
    #expect(RiderName(text)?.description == text)
  }

  @Test(
    "refuses what is not the name of a folder everywhere",
    arguments: ["", ".", "..", ".ann", "a/b", "../a", "a b", "änn", "a\0", "a\n", String(repeating: "a", count: 65)])
  func invalid(_ text: String) {
    #expect(RiderName(text) == nil)
  }
}
