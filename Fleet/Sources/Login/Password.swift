import CSodium
import Dispatch
import Foundation
import Synchronization

/// A password in the form that is hashed.
package struct Password: Sendable {
  /// Lengths in characters.
  static let length = 8...256
  let bytes: [UInt8]

  /// A typed password of any length, for comparison with a hash.
  ///
  /// Normalized (NFC), because keyboards differ: "ä" can be one character or two.
  package init?(attempt text: String) {
    let bytes = Array(text.precomposedStringWithCanonicalMapping.utf8)
    guard (1...4 * Self.length.upperBound).contains(bytes.count) else { return nil }
    self.bytes = bytes
  }

  /// Why a text cannot become a password.
  package enum Weakness: Error, Equatable, CustomStringConvertible {
    case length
    /// The text is the address, or one repeated character.
    case obvious

    package var description: String {
      switch self {
      case .length: "a password has \(Password.length.lowerBound) to \(Password.length.upperBound) characters"
      case .obvious: "this password is too easy to guess"
      }
    }
  }

  /// A new password. Only its length is checked, not its kinds of characters (NIST SP 800-63B 3.1.1.2).
  package init(new text: String, for email: EmailAddress) throws(Weakness) {
    guard let password = Password(attempt: text), Self.length.contains(text.unicodeScalars.count)
    else { throw .length }
    guard Set(password.bytes).count > 3, text.lowercased() != email.description else { throw .obvious }
    self = password
  }
}

/// Hashes passwords with argon2id by libsodium: 19 MiB, two passes (OWASP's parameters).
///
/// A hash takes about 80 ms and must not block other requests. So hashing has at most two threads, and at most 64
/// requests wait for them. Further requests are told to try again.
package final class PasswordHasher: Sendable {
  /// All 64 places are taken.
  package struct Busy: Error {}

  private static let passes = UInt64(2)
  private static let memory = 19 << 20
  private static let threads = 2
  private static let places = 64

  private struct State {
    var running = 0
    var waiting: [@Sendable () -> Void] = []
  }
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "passwords", attributes: .concurrent)

  package init() { precondition(sodium_init() >= 0, "libsodium does not start") }

  /// The hash with its salt and parameters, as text.
  package func hash(_ password: Password) async throws -> String {
    try await perform {
      var text = [CChar](repeating: 0, count: Int(crypto_pwhash_STRBYTES))
      let result = password.bytes.withUnsafeBytes { bytes in
        crypto_pwhash_str(
          &text, bytes.bindMemory(to: CChar.self).baseAddress!, UInt64(bytes.count), Self.passes, Self.memory)
      }
      guard result == 0 else { return nil }
      return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
  }

  /// Whether the password matches that hash.
  ///
  /// - Parameter hash: nil if there is no such account. The check takes equally long, and returns false.
  package func verify(_ password: Password, hash: String?) async throws -> Bool {
    let isRight: Bool? = try await perform {
      password.bytes.withUnsafeBytes { bytes in
        crypto_pwhash_str_verify(
          hash ?? Self.nobody, bytes.bindMemory(to: CChar.self).baseAddress!, UInt64(bytes.count)) == 0
      }
    }
    return isRight == true && hash != nil
  }

  /// A hash that matches nothing, with the same parameters.
  static let nobody =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

  /// Whether libsodium can read a hash, and the hash has the current parameters.
  static func needsNoOtherParameters(_ hash: String) -> Bool {
    crypto_pwhash_str_needs_rehash(hash, passes, memory) == 0
  }

  func perform<Result: Sendable>(_ work: @escaping @Sendable () -> Result?) async throws -> Result {
    let result = try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Result?, any Error>) in
      let job: @Sendable () -> Void = {
        continuation.resume(returning: work())
        self.finish()
      }
      let isStarted: Bool? = state.withLock { state in
        if state.running < Self.threads {
          state.running += 1
          return true
        }
        guard state.waiting.count < Self.places else { return nil }
        state.waiting.append(job)
        return false
      }
      switch isStarted {
      case true?: queue.async(execute: job)
      case false?: break
      case nil: continuation.resume(throwing: Busy())
      }
    }
    // argon2 fails only when it cannot allocate its memory.
    guard let result else { throw Busy() }
    return result
  }

  /// The number of running and waiting hashes.
  var load: (running: Int, waiting: Int) { state.withLock { ($0.running, $0.waiting.count) } }

  private func finish() {
    let next: (@Sendable () -> Void)? = state.withLock { state in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.running -= 1
      return nil
    }
    if let next { queue.async(execute: next) }
  }
}
