/// A rider, as the operator calls them: 1 to 64 letters, digits, `.`, `-` and `_` of ASCII, the first not a `.`.
///
/// It becomes the name of a folder, so nothing in it can lead elsewhere or hide it.
package struct RiderName: Hashable, Sendable, CustomStringConvertible {
  package let description: String

  package init?(_ text: String) {
    let allowed = text.utf8.allSatisfy {
      ($0 >= 0x61 && $0 <= 0x7A) || ($0 >= 0x41 && $0 <= 0x5A) || ($0 >= 0x30 && $0 <= 0x39)
        || $0 == 0x2D || $0 == 0x2E || $0 == 0x5F
    }
    guard allowed, (1...64).contains(text.utf8.count), !text.hasPrefix(".") else { return nil }
    description = text
  }
}
