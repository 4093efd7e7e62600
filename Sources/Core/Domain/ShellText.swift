import Encoding

/// A command that can be pasted into a shell. Words with characters that are special to the shell are quoted
/// (POSIX.1-2024, Shell Command Language, 2.2.2).
package func shellCommand(_ words: String...) -> String { words.map(shellWord).joined(separator: " ") }

package func shellWord(_ word: String) -> String {
  let plain = word.utf8.allSatisfy { $0.isASCIIAlphanumeric || "%+,-./:=@_".utf8.contains($0) }
  return plain && !word.isEmpty ? word : "'\(word.substituting("'", by: "'\\''"))'"
}
