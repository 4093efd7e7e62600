import Cryptography
package import Domain
import Encoding

/// Splits a text that is too long for one QR code: `stepctl-part:2/3/HASH:TEXT`, where HASH is the first 16 bytes of
/// the SHA-256 of the whole text in base64url (PROTOCOL.md, section 9.2).
package struct CodeParts {
  /// Bytes of text in one part. Any camera can read a code of this size and its header.
  package static let size = 1200
  /// More parts than the longest access file needs.
  package static let most = 16
  private static let scheme = "stepctl-part:"

  /// The number of parts, and the hash of the text that they belong to.
  private var name: (count: Int, hash: String)?
  private var parts: [Int: String] = [:]

  package init() {}

  /// Splits a text into codes of about equal size. The text must have only one-byte characters.
  package static func split(_ text: String) -> [String] {
    let count = (text.utf8.count + size - 1) / size
    let length = (text.utf8.count + count - 1) / count
    let (bytes, hash) = (Array(text.utf8), hash(of: text))
    return (0..<count).map { index in
      let part = bytes[index * length..<min(bytes.count, (index + 1) * length)]
      return "\(scheme)\(index + 1)/\(count)/\(hash):\(String(decoding: part, as: UTF8.self))"
    }
  }

  private static func hash(of text: String) -> String {
    Base64URL.encode(Array(SHA256.digest(of: Array(text.utf8)).prefix(16)))
  }

  /// Takes a code's text. The same code may come again.
  ///
  /// - Returns: false if the text is not a part.
  package mutating func take(_ text: String) throws(CodePartError) -> Bool {
    guard text.hasPrefix(Self.scheme) else { return false }
    let rest = text.dropFirst(Self.scheme.count)
    guard let colon = rest.firstIndex(of: ":") else { throw .damaged }
    let names = rest[..<colon].split(separator: "/", omittingEmptySubsequences: false)
    guard names.count == 3, let index = Int(names[0]), let count = Int(names[1]),
      "\(index)/\(count)" == names[..<2].joined(separator: "/"),
      (2...Self.most).contains(count), (1...count).contains(index), Base64URL.decode(String(names[2]))?.count == 16
    else { throw .damaged }
    let hash = String(names[2])
    if let name, name != (count, hash) { throw .mixed }
    name = (count, hash)
    let part = String(rest[rest.index(after: colon)...])
    guard parts.updateValue(part, forKey: index).map({ $0 == part }) ?? true else { throw .mixed }
    return true
  }

  /// How many parts were seen, and of how many; nil before the first.
  package var progress: (seen: Int, count: Int)? { name.map { (parts.count, $0.count) } }

  /// The whole text; nil if no part was taken.
  package func joined() throws(CodePartError) -> String? {
    guard let name else { return nil }
    let missing = (1...name.count).filter { parts[$0] == nil }
    guard missing.isEmpty else { throw .missing(missing, of: name.count) }
    let text = (1...name.count).compactMap { parts[$0] }.joined()
    guard Self.hash(of: text) == name.hash else { throw .damaged }
    return text
  }
}

/// Why the codes cannot be joined.
package enum CodePartError: Failure, Equatable {
  case damaged
  /// They belong to different texts.
  case mixed
  case missing([Int], of: Int)

  package var exitStatus: ExitStatus { .badData }

  package var description: String {
    switch self {
    case .damaged: "a code is damaged: it is not a part of a longer text"
    case .mixed: "the codes are parts of different texts"
    case .missing(let parts, let count):
      "code \(parts.map(String.init).joined(separator: ", ")) of \(count) is missing"
    }
  }

  package var hint: String? {
    switch self {
    case .damaged: nil
    case .mixed: "give the codes of one text only"
    case .missing: "give all of them, in any order: --qr FILE --qr FILE …"
    }
  }
}
