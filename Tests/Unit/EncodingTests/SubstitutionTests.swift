import Testing

@testable import Encoding

@Suite("Substitution") struct SubstitutionTests {
  @Test("every occurrence is replaced, from the left, and what replaces it is not read again")
  func all() {
    #expect("a&b&&c".substituting("&", by: "&amp;") == "a&amp;b&amp;&amp;c")
    #expect("aaa".substituting("aa", by: "b") == "ba")
    #expect("".substituting("x", by: "y") == "" && "abc".substituting("x", by: "y") == "abc")
    #expect("12°".substituting("°", by: " degrees") == "12 degrees")
  }

  @Test("bytes count, not characters: an accent after a quote changes nothing")
  func accents() {
    let text = "it'\u{301}s"
    #expect(text.substituting("'", by: "\"").unicodeScalars.elementsEqual("it\"\u{301}s".unicodeScalars))
    #expect(text.range(ofBytes: "'").map { text.utf8.distance(from: text.startIndex, to: $0.lowerBound) } == 2)
    #expect(text.range(ofBytes: "\"") == nil && text.range(ofBytes: "s'") == nil)
  }

  @Test("a text is cut between characters")
  func cut() {
    let text = "°€\u{1F6AA}x"
    #expect((0...11).map { text.utf8(upTo: $0).count } == [0, 0, 2, 2, 2, 5, 5, 5, 5, 9, 10, 10])
    #expect(text.utf8(upTo: 6) == Array("°€".utf8))
  }
}
