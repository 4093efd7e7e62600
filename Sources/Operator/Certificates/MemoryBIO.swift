import COpenSSL

/// Bytes on their way into or out of libcrypto (BIO_s_mem(3)).
struct MemoryBIO: ~Copyable {
  private let handle: OpenSSLHandle

  init(_ bytes: [UInt8] = []) throws(OpenSSLError) {
    let handle = try OpenSSLHandle("allocate memory", adopting: BIO_new(BIO_s_mem()), freedBy: BIO_free_all)
    if !bytes.isEmpty { try check("allocate memory", BIO_write(handle.pointer, bytes, Int32(bytes.count))) }
    self.handle = handle
  }

  var pointer: OpaquePointer { handle.pointer }

  /// Takes out all that is in it.
  func read() -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = BIO_read(handle.pointer, &chunk, Int32(chunk.count))
      // Below zero at the end: an empty memory BIO answers "try again".
      guard count > 0 else { return bytes }
      bytes += chunk[..<Int(count)]
    }
  }
}
