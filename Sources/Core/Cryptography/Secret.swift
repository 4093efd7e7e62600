import CLibcrypto

/// Secret bytes. Their memory is cleared before it is freed.
package final class Secret: Sendable, Equatable {
  // Written before the initializer returns, and then not changed until it is cleared.
  private nonisolated(unsafe) let memory: UnsafeMutableBufferPointer<UInt8>

  /// - Parameter fill: writes all bytes, which are zero at first.
  init(count: Int, _ fill: (UnsafeMutableBufferPointer<UInt8>) -> Void) {
    memory = .allocate(capacity: count)
    memory.initialize(repeating: 0)
    fill(memory)
  }

  package convenience init(_ bytes: [UInt8]) { self.init(count: bytes.count) { _ = $0.update(fromContentsOf: bytes) } }

  /// A prefix, followed by another secret.
  convenience init(_ prefix: [UInt8], _ secret: Secret) {
    self.init(count: prefix.count + secret.memory.count) { memory in
      let end = memory.update(fromContentsOf: prefix)
      _ = memory[end...].update(fromContentsOf: secret.memory)
    }
  }

  static let empty = Secret([])

  /// The first bytes of the secret.
  func prefix(_ count: Int) -> Secret {
    Secret(count: count) { _ = $0.update(fromContentsOf: memory[..<count]) }
  }

  deinit {
    OPENSSL_cleanse(memory.baseAddress, memory.count)
    memory.deallocate()
  }

  /// A copy, which is never cleared.
  package var bytes: [UInt8] { Array(memory) }

  func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    body(UnsafeBufferPointer(memory))
  }

  package static func == (a: Secret, b: Secret) -> Bool {
    a.withBytes { a in b.withBytes { b in constantTimeEqual(a, b) } }
  }
}

/// Compares in a time that does not depend on where two values differ.
///
/// The lengths are not secret in this protocol: every secret has a fixed one.
package func constantTimeEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
  a.withUnsafeBufferPointer { a in b.withUnsafeBufferPointer { b in constantTimeEqual(a, b) } }
}

private func constantTimeEqual(_ a: UnsafeBufferPointer<UInt8>, _ b: UnsafeBufferPointer<UInt8>) -> Bool {
  a.count == b.count && CRYPTO_memcmp(a.baseAddress, b.baseAddress, a.count) == 0
}

/// Bytes from the system's generator, which the kernel seeds.
package func randomBytes(_ count: Int) -> [UInt8] {
  var generator = SystemRandomNumberGenerator()
  var bytes: [UInt8] = []
  // Each number costs a system call, and a single byte would cost one as well.
  while bytes.count < count { withUnsafeBytes(of: generator.next() as UInt64) { bytes += $0 } }
  return Array(bytes.prefix(count))
}
