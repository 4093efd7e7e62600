import Domain
import Testing

@Suite("spelling")
struct SpellingTests {
  @Test("the nearest word is meant, when it is near")
  func nearest() {
    let words = ["host", "port", "ca", "cert", "key"]
    #expect(Spelling.nearest(to: "hosts", among: words) == "host")
    #expect(Spelling.nearest(to: "hsot", among: words) == "host")
    #expect(Spelling.nearest(to: "Port", among: words) == "port")
    #expect(Spelling.nearest(to: "crt", among: words) == "cert")
    #expect(Spelling.nearest(to: "ky", among: words) == "key")
    #expect(Spelling.nearest(to: "x", among: words) == nil)
    #expect(Spelling.nearest(to: "certificate", among: words) == nil)
    #expect(Spelling.nearest(to: String(repeating: "port", count: 4000), among: words) == nil)
  }
}
