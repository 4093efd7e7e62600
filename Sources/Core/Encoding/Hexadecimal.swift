/// Bytes as hexadecimal digits, in upper case.
public func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
  let digits = Array("0123456789ABCDEF".utf8)
  return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] }, as: UTF8.self)
}

/// The bytes that hexadecimal digits in either case stand for; nil for anything else, and for an odd number of digits.
public func hexadecimal(_ text: some StringProtocol) -> [UInt8]? {
  var bytes: [UInt8] = []
  var high: UInt8?
  for character in text.utf8 {
    let digit: UInt8
    switch character {
    case 0x30...0x39: digit = character - 0x30
    case 0x41...0x46: digit = character - 0x41 + 10
    case 0x61...0x66: digit = character - 0x61 + 10
    default: return nil
    }
    if let first = high {
      bytes.append(first << 4 | digit)
      high = nil
    } else {
      high = digit
    }
  }
  return high == nil ? bytes : nil
}
