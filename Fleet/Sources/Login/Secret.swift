import Crypto
import Encoding

/// Random bytes: from the kernel's generator in the server, from a list in tests.
package typealias Randomness = @Sendable (_ count: Int) -> [UInt8]

/// The kernel's generator.
package let systemRandomness: Randomness = { count in
  var generator = SystemRandomNumberGenerator()
  return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
}

/// A secret's form in the database: its SHA-256, in base64url.
///
/// A reader of the database, or of a copy of it, gets no usable token. The digest protects only secrets of 128 random
/// bits or more. A mailed code and a user code are shorter, and live for minutes.
func digest(of secret: String) -> String { Base64URL.encode(SHA256.hash(data: Array(secret.utf8))) }

/// Compares two digests, or two texts of equal length, in constant time.
func constantTimeEqual(_ a: String, _ b: String) -> Bool {
  let (a, b) = (Array(a.utf8), Array(b.utf8))
  guard a.count == b.count else { return false }
  var difference: UInt8 = 0
  for index in a.indices { difference |= a[index] ^ b[index] }
  return difference == 0
}

/// An opaque API token: the name of its session, and a secret.
///
/// Tokens are random, not signed. So each request reads a row, but the end of a session, a suspension and a change of
/// role take effect at once, there is no key to rotate, and nothing in a token can be misread. Because a token contains
/// its session's name, the server recognizes a used refresh token without a list of all old ones: the session exists,
/// and its present secret differs.
struct OpaqueToken: Equatable {
  /// The prefix lets scanners for leaked secrets find tokens.
  enum Kind: String {
    case access = "sfa_"
    case refresh = "sfr_"
  }

  let kind: Kind
  /// The session's name: 16 bytes in base64url.
  let session: String
  /// The whole token, as the client stores it.
  let text: String

  init(_ kind: Kind, session: String, random: Randomness) {
    self.kind = kind
    self.session = session
    text = kind.rawValue + session + Base64URL.encode(random(32))
  }

  /// Nil for a text that this server cannot have issued.
  init?(_ text: String) {
    guard text.utf8.count == 4 + 22 + 43, let kind = Kind(rawValue: String(text.prefix(4))) else { return nil }
    let session = String(text.dropFirst(4).prefix(22))
    guard Base64URL.decode(session)?.count == 16, Base64URL.decode(text.dropFirst(26))?.count == 32 else { return nil }
    self.kind = kind
    self.session = session
    self.text = text
  }

  static func newSession(_ random: Randomness) -> String { Base64URL.encode(random(16)) }
}

/// The code that a person reads in the terminal and types in the browser (RFC 8628 6.1): eight of twenty letters. There
/// are no vowels, so that no words appear, and no letters and digits that look alike. 34 bits; guesses are limited.
struct UserCode: Equatable, CustomStringConvertible, Sendable {
  private static let alphabet = Array("BCDFGHJKLMNPQRSTVWXZ")
  private let letters: String

  init(_ random: Randomness) {
    var letters = ""
    while letters.count < 8 {
      // 240 is the largest multiple of 20 in a byte. Larger values would make some letters likelier.
      for byte in random(16) where byte < 240 && letters.count < 8 { letters.append(Self.alphabet[Int(byte) % 20]) }
    }
    self.letters = letters
  }

  /// Parses the code as people type it: in either case, with or without hyphens and spaces.
  init?(_ typed: String) {
    let letters = typed.uppercased().filter { $0 != "-" && $0 != " " }
    guard typed.utf8.count <= 32, letters.utf8.count == 8, letters.allSatisfy(Self.alphabet.contains) else {
      return nil
    }
    self.letters = letters
  }

  var description: String { "\(letters.prefix(4))-\(letters.suffix(4))" }
  var digest: String { Login.digest(of: "user-code:\(letters)") }
}

/// Six digits that are sent by mail. There are only a million codes, so each is valid for a few attempts and a quarter
/// of an hour.
struct MailedCode: CustomStringConvertible, Sendable {
  /// Lifetime, seconds.
  static let lifetime: Int64 = 900
  /// The maximum number of attempts.
  static let attempts: Int64 = 5
  /// The maximum number of valid codes for one address. With five attempts at each, a guess succeeds once in 66,666
  /// times.
  static let limit = 3

  let description: String

  init(_ random: Randomness) {
    while true {
      let number = random(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
      // The largest multiple of a million below 2^32.
      guard number < 4_294_000_000 else { continue }
      let digits = String(number % 1_000_000)
      description = String(repeating: "0", count: 6 - digits.count) + digits
      return
    }
  }

  /// Accepts spaces, because some mail programs show "123 456".
  init?(_ typed: String) {
    let digits = typed.filter { $0 != " " }
    guard digits.utf8.count == 6, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    description = digits
  }

  /// - Parameter owner: the code's owner. It makes the digests of two people's equal codes differ in the database.
  func digest(for owner: String) -> String { Login.digest(of: "mailed-code:\(owner):\(description)") }
}
