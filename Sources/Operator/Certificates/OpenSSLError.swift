import COpenSSL

/// A call to libcrypto that failed: what it was for, and the library's own reason.
package struct OpenSSLError: Error, Equatable, CustomStringConvertible {
  /// What was tried, as a verb for people: `sign the certificate`.
  package let operation: String
  /// The first of the errors that the library noted (ERR_get_error(3)); 0 when it noted none.
  package let code: UInt

  /// Takes the reason from the thread's error queue, and leaves that empty for the next call.
  init(_ operation: String) {
    self.operation = operation
    code = ERR_get_error()
    ERR_clear_error()
  }

  package var description: String {
    let reason = ERR_reason_error_string(code).map { String(cString: $0) } ?? "OpenSSL gives no reason"
    return "cannot \(operation): \(reason)"
  }
}

/// Throws unless a call that answers with 1, or with a size, did.
func check(_ operation: String, _ status: Int32) throws(OpenSSLError) {
  guard status > 0 else { throw OpenSSLError(operation) }
}

/// Throws unless a call answered with the object that it filled, which is still its owner's.
func check<Object>(_ operation: String, _ filled: UnsafeMutablePointer<Object>?) throws(OpenSSLError) {
  guard filled != nil else { throw OpenSSLError(operation) }
}
