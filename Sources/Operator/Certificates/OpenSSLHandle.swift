import COpenSSL

/// The one owner of an object of libcrypto, freed when the owner goes.
struct OpenSSLHandle: ~Copyable {
  /// The object, lent to calls; it is not to be kept or freed.
  let pointer: OpaquePointer
  private let free: @convention(c) (OpaquePointer?) -> Void

  /// Takes over what a call just returned; nil throws.
  init(
    _ operation: String, adopting pointer: OpaquePointer?, freedBy free: @convention(c) (OpaquePointer?) -> Void
  ) throws(OpenSSLError) {
    guard let pointer else { throw OpenSSLError(operation) }
    self.pointer = pointer
    self.free = free
  }

  deinit { free(pointer) }
}
