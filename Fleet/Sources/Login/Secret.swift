import Crypto
import Encoding

/// Random bytes: from the kernel's generator in the server, from a list in tests.
package typealias Randomness = @Sendable (_ count: Int) -> [UInt8]

/// The kernel's generator.
package let systemRandomness: Randomness = { count in
  var generator = SystemRandomNumberGenerator()
  return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
}

/// What stands in the database in place of a secret: its SHA-256, in base64url.
///
/// Whoever reads the database, or a copy of it, gets no token that works. Only secrets of 128 random bits or more are
/// safe in that way. A mailed code and a user code are shorter, and live for minutes.
func digest(of secret: String) -> String { Base64URL.encode(SHA256.hash(data: Array(secret.utf8))) }

/// Compares two digests, or two texts of one length, without telling by its time where they first differ.
func constantTimeEqual(_ a: String, _ b: String) -> Bool {
  let (a, b) = (Array(a.utf8), Array(b.utf8))
  guard a.count == b.count else { return false }
  var difference: UInt8 = 0
  for index in a.indices { difference |= a[index] ^ b[index] }
  return difference == 0
}

/// An opaque token of the API: the name of its session, and a secret.
///
/// Tokens are random values and not signed ones. Each request then reads one row, but a session that ends, an account
/// that is suspended and a role that changes count at once, there is no key to rotate, and nothing in a token can be
/// misread. Because the name of the session is part of it, a refresh token that was used before is recognized without a
/// list of all that ever were: the session is there, and its present secret is another.
struct OpaqueToken: Equatable {
  /// The prefix lets programs that search for leaked secrets find them.
  enum Kind: String {
    case access = "sfa_"
    case refresh = "sfr_"
  }

  let kind: Kind
  /// The session's name: 16 bytes in base64url.
  let session: String
  /// The whole token, as the client has it.
  let text: String

  init(_ kind: Kind, session: String, random: Randomness) {
    self.kind = kind
    self.session = session
    text = kind.rawValue + session + Base64URL.encode(random(32))
  }

  /// Nil for what this server cannot have made.
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

/// What a person reads in the terminal and types in the browser (RFC 8628 6.1): eight of twenty letters, without
/// vowels, so that no word comes out, and without letters and digits that look alike. 34 bits; guesses are limited.
struct UserCode: Equatable, CustomStringConvertible, Sendable {
  private static let alphabet = Array("BCDFGHJKLMNPQRSTVWXZ")
  private let letters: String

  init(_ random: Randomness) {
    var letters = ""
    while letters.count < 8 {
      // 240 is the largest multiple of 20 in a byte: what is above would make some letters likelier.
      for byte in random(16) where byte < 240 && letters.count < 8 { letters.append(Self.alphabet[Int(byte) % 20]) }
    }
    self.letters = letters
  }

  /// As people type it: in either case, with hyphens and spaces, or without.
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

/// Six digits that go by mail. A million possibilities: each is good for a few attempts and a quarter of an hour.
struct MailedCode: CustomStringConvertible, Sendable {
  /// Seconds that it counts.
  static let lifetime: Int64 = 900
  /// How often it may be tried.
  static let attempts: Int64 = 5
  /// How many may be under way for one address: with five attempts at each, chance finds one in 66,666 times.
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

  /// Spaces are allowed: some mail programs show "123 456".
  init?(_ typed: String) {
    let digits = typed.filter { $0 != " " }
    guard digits.utf8.count == 6, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    description = digits
  }

  /// - Parameter owner: what the code belongs to, so that equal codes of two people do not look equal in the database.
  func digest(for owner: String) -> String { Login.digest(of: "mailed-code:\(owner):\(description)") }
}
