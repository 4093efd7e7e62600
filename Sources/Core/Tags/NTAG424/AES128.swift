import Crypto
import CryptoExtras

/// The block cipher in the two modes in which the chip uses it. Every key has 16 bytes: only another size could fail.
package enum AES128 {
  package static let blockSize = 16

  /// CBC without padding (NIST SP 800-38A, 6.2).
  ///
  /// - Parameter plain: whole blocks.
  static func encrypt(_ plain: [UInt8], _ key: [UInt8], initial: [UInt8] = zeros) -> [UInt8] {
    var last = initial
    return stride(from: 0, to: plain.count, by: blockSize).flatMap { start in
      last = zip(last, plain[start..<start + blockSize]).map { $0 ^ $1 }
      try! AES.permute(&last, key: SymmetricKey(data: key))
      return last
    }
  }

  package static func decrypt(_ cipher: [UInt8], _ key: [UInt8], initial: [UInt8] = zeros) -> [UInt8] {
    var last = initial[...]
    return stride(from: 0, to: cipher.count, by: blockSize).flatMap { start in
      var block = Array(cipher[start..<start + blockSize])
      try! AES.inversePermute(&block, key: SymmetricKey(data: key))
      defer { last = cipher[start..<start + blockSize] }
      return zip(block, last).map { $0 ^ $1 }
    }
  }

  /// CMAC (NIST SP 800-38B).
  package static func mac(_ message: [UInt8], _ key: [UInt8]) -> [UInt8] {
    var code = try! AES.CMAC(key: SymmetricKey(data: key))
    code.update(data: message)
    return code.finalize().withUnsafeBytes { Array($0) }
  }

  /// Every second byte of it, from the second one on (NT4H2421Gx 9.1.3).
  package static func shortMAC(_ message: [UInt8], _ key: [UInt8]) -> [UInt8] {
    let long = mac(message, key)
    return stride(from: 1, to: long.count, by: 2).map { long[$0] }
  }

  package static let zeros = [UInt8](repeating: 0, count: blockSize)
}
