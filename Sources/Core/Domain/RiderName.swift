import Encoding

/// The operator's name for a rider: 1 to 64 letters, digits, `.`, `-` and `_` of ASCII, the first not a `.`.
///
/// It becomes the name of a folder, so it cannot lead elsewhere or hide the folder.
package struct RiderName: Hashable, Sendable, CustomStringConvertible {
  package let description: String

  package init?(_ text: String) {
    let allowed = text.utf8.allSatisfy { $0.isASCIIAlphanumeric || ".-_".utf8.contains($0) }
    guard allowed, (1...64).contains(text.utf8.count), !text.hasPrefix(".") else { return nil }
    description = text
  }
}
