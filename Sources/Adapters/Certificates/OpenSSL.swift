import COpenSSL

/// A call to libcrypto that failed: its purpose, and the library's reason.
package struct OpenSSLError: Error, Equatable, CustomStringConvertible {
  /// The purpose, as a verb for people: `sign the certificate`.
  package let operation: String
  /// The first error of the library's queue (ERR_get_error(3)); 0 when it is empty.
  package let code: UInt
  /// What the failure means for people, if that is known; it takes the place of the library's reason.
  package let meaning: String?

  /// Takes the reason from the thread's error queue, and clears the queue for the next call.
  init(_ operation: String, because meaning: String? = nil) {
    self.operation = operation
    self.meaning = meaning
    code = ERR_get_error()
    ERR_clear_error()
  }

  package var description: String {
    let reason =
      meaning ?? ERR_reason_error_string(code).map { String(cString: $0) } ?? "OpenSSL gives no reason"
    return "cannot \(operation): \(reason)"
  }
}

/// Throws unless the call returned 1, or a size.
func check(_ operation: String, _ status: Int32) throws(OpenSSLError) {
  guard status > 0 else { throw OpenSSLError(operation) }
}

/// Throws unless the call returned the object that it filled; the object keeps its owner.
func check<Object>(_ operation: String, _ filled: UnsafeMutablePointer<Object>?) throws(OpenSSLError) {
  guard filled != nil else { throw OpenSSLError(operation) }
}

/// The only owner of an object of libcrypto, which frees it.
struct OpenSSLHandle: ~Copyable {
  /// The object, lent to calls that neither keep nor free it.
  let pointer: OpaquePointer
  private let free: @convention(c) (OpaquePointer?) -> Void

  /// Takes ownership of the result of a call; throws for nil.
  ///
  /// - Parameter meaning: what nil means for people, if it has one meaning.
  init(
    _ operation: String, adopting pointer: OpaquePointer?, freedBy free: @convention(c) (OpaquePointer?) -> Void,
    orBecause meaning: String? = nil
  ) throws(OpenSSLError) {
    guard let pointer else { throw OpenSSLError(operation, because: meaning) }
    self.pointer = pointer
    self.free = free
  }

  deinit { free(pointer) }
}

/// Bytes to or from libcrypto (BIO_s_mem(3)).
struct MemoryBIO: ~Copyable {
  private let handle: OpenSSLHandle

  init(_ bytes: [UInt8] = []) throws(OpenSSLError) {
    let handle = try OpenSSLHandle("allocate memory", adopting: BIO_new(BIO_s_mem()), freedBy: BIO_free_all)
    if !bytes.isEmpty { try check("allocate memory", BIO_write(handle.pointer, bytes, Int32(bytes.count))) }
    self.handle = handle
  }

  var pointer: OpaquePointer { handle.pointer }

  /// Removes and returns all of its bytes.
  func read() -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = BIO_read(handle.pointer, &chunk, Int32(chunk.count))
      // Negative at the end: an empty memory BIO answers "try again".
      guard count > 0 else { return bytes }
      bytes += chunk[..<Int(count)]
    }
  }
}
