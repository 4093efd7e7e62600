import COpenSSL

/// A private P-256 key of a certificate. (RSA would make each TLS handshake of a small computer slower.)
struct PrivateKey: ~Copyable {
  let handle: OpenSSLHandle

  /// A new key.
  init() throws(OpenSSLError) {
    handle = try OpenSSLHandle("make a key", adopting: shim_EVP_EC_gen("P-256"), freedBy: EVP_PKEY_free)
  }

  init(pem: [UInt8]) throws(OpenSSLError) {
    let bio = try MemoryBIO(pem)
    // The callback is asked for a passphrase; without one of ours, OpenSSL would ask on the terminal.
    let key = PEM_read_bio_PrivateKey(bio.pointer, nil, { _, _, _, _ in -1 }, nil)
    handle = try OpenSSLHandle("read the private key", adopting: key, freedBy: EVP_PKEY_free)
  }

  /// PKCS #8 (RFC 5958), not encrypted: a broker and a controller start without anybody there.
  func pem() throws(OpenSSLError) -> [UInt8] {
    let bio = try MemoryBIO()
    try check(
      "write the private key", PEM_write_bio_PKCS8PrivateKey(bio.pointer, handle.pointer, nil, nil, 0, nil, nil))
    return bio.read()
  }
}
