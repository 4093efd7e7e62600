import Testing

@testable import Domain

@Suite("Commands to paste") struct ShellTextTests {
  @Test(
    "a word from outside stays one word, whatever is in it",
    arguments: [
      ("car", "car"), ("", "''"), ("a b", "'a b'"), ("it's", #"'it'\''s'"#), ("$(id)", "'$(id)'"),
      // One character to Swift, and to a shell a quote that ends the word.
      ("x'\u{301}; id", "'x'\\''\u{301}; id'"),
    ])
  func quoted(word: String, text: String) { #expect(shellWord(word).unicodeScalars.elementsEqual(text.unicodeScalars)) }
}
