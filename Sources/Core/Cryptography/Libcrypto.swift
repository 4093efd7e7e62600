import CLibcrypto

/// The algorithms that this module takes from libcrypto, and the handling of errors from its calls.
///
/// A call fails for one of two reasons. If its input is bad, `isRight` returns false, and the caller refuses the input.
/// If libcrypto lacks memory, its configuration (openssl.cnf) has removed an algorithm, or a provider's key has gone,
/// nothing safe is left to do, and `require` ends the process.
///
/// Each algorithm is fetched once per process, on first use (crypto(7), "Explicit fetching"). It comes from the default
/// library context, because TLS uses that one too. A separate context would cost two more milliseconds.
enum Libcrypto {
  // Unsafe only for the compiler: a fetched algorithm never changes, so threads may share it (openssl-threads(7)).
  nonisolated(unsafe) static let sha256 = fetch("SHA2-256", EVP_MD_fetch)
  nonisolated(unsafe) static let aes128CBC = fetch("AES-128-CBC", EVP_CIPHER_fetch)
  nonisolated(unsafe) static let chaCha20Poly1305 = fetch("ChaCha20-Poly1305", EVP_CIPHER_fetch)
  nonisolated(unsafe) static let hmac = fetch("HMAC", EVP_MAC_fetch)
  nonisolated(unsafe) static let cmac = fetch("CMAC", EVP_MAC_fetch)

  /// Must be called before any other libcrypto function: exit(3) must not free libcrypto's tables while a thread still
  /// runs.
  static func start() { require("start", OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)) }

  private static func fetch(
    _ name: String, _ fetch: (OpaquePointer?, UnsafePointer<CChar>?, UnsafePointer<CChar>?) -> OpaquePointer?
  ) -> OpaquePointer {
    start()
    return require("give \(name)", fetch(nil, name, nil))
  }

  /// Ends the process unless a call has returned 1.
  static func require(_ operation: @autoclosure () -> String, _ status: Int32) {
    if status != 1 { fail(operation()) }
  }

  /// Ends the process unless a call has returned an object.
  static func require(_ operation: @autoclosure () -> String, _ object: OpaquePointer?) -> OpaquePointer {
    guard let object else { fail(operation()) }
    return object
  }

  /// Whether a call that checks its input has returned 1. If not, the reason is removed from the thread's error queue,
  /// where TLS would take it for its own error.
  static func isRight(_ status: Int32) -> Bool {
    if status == 1 { return true }
    ERR_clear_error()
    return false
  }

  /// Computes a message authentication code (EVP_MAC(3)).
  ///
  /// - Parameters:
  ///   - part: the digest or cipher that the algorithm should use: the name of the parameter, and the name of the part.
  ///   - count: the length of the code, bytes.
  static func code(
    for message: Secret, _ algorithm: OpaquePointer, with part: (parameter: String, name: String), key: Secret,
    count: Int
  ) -> Secret {
    let context = require("compute a MAC", EVP_MAC_CTX_new(algorithm))
    defer { EVP_MAC_CTX_free(context) }
    part.parameter.withCString { parameter in
      part.name.withCString { name in
        let parameters = [
          OSSL_PARAM_construct_utf8_string(parameter, UnsafeMutablePointer(mutating: name), 0),
          OSSL_PARAM_construct_end(),
        ]
        key.withBytes { require("compute a MAC", EVP_MAC_init(context, $0.baseAddress, $0.count, parameters)) }
      }
    }
    message.withBytes { require("compute a MAC", EVP_MAC_update(context, $0.baseAddress, $0.count)) }
    return Secret(count: count) { code in
      var written = 0
      require("compute a MAC", EVP_MAC_final(context, code.baseAddress, &written, code.count))
      precondition(written == count)
    }
  }

  private static func fail(_ operation: String) -> Never {
    let reason = ERR_reason_error_string(ERR_peek_error()).map { String(cString: $0) } ?? "no reason is given"
    fatalError("libcrypto cannot \(operation): \(reason)")
  }
}
