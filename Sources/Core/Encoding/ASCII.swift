/// The character classes for names in protocols and files, byte by byte: no locale, and no letters beyond ASCII.
extension UInt8 {
  /// `0` to `9`.
  package var isASCIIDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
  /// `a` to `z`.
  package var isASCIILowercase: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self) }
  /// `A` to `Z`.
  package var isASCIIUppercase: Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) }
  /// A letter or a digit.
  package var isASCIIAlphanumeric: Bool { isASCIILowercase || isASCIIUppercase || isASCIIDigit }
}
