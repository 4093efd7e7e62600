extension Array where Element == UInt8 {
  /// The bytes without the mark that some editors write before UTF-8 (Unicode Standard, 23.8).
  package var withoutByteOrderMark: [UInt8] { starts(with: [0xEF, 0xBB, 0xBF]) ? Array(dropFirst(3)) : self }
}
