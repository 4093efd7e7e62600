extension AES128 {
  /// Every second byte of the CMAC, beginning with the second (NT4H2421Gx 9.1.3).
  package static func shortMAC(_ message: [UInt8], _ key: [UInt8]) -> [UInt8] {
    let long = mac(message, key)
    return stride(from: 1, to: long.count, by: 2).map { long[$0] }
  }
}
