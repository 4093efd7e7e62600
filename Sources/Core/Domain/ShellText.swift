import Encoding

/// A command as it can be pasted into a shell: each word that the shell would read otherwise is quoted (POSIX.1-2024,
/// Shell Command Language, 2.2.2).
package func shellCommand(_ words: String...) -> String { words.map(shellWord).joined(separator: " ") }

package func shellWord(_ word: String) -> String {
  let plain = word.utf8.allSatisfy { byte in
    (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
      || "%+,-./:=@_".utf8.contains(byte)
  }
  return plain && !word.isEmpty ? word : "'\(word.substituting("'", by: "'\\''"))'"
}
