/// The bytes of a stream that have arrived but have not been taken, and their position in the stream.
struct StreamBuffer: Sendable {
  /// The bytes that have not been taken begin at `position`.
  private(set) var bytes: [UInt8] = []
  private(set) var position = 0
  /// How many bytes of the stream came before `bytes`.
  private var dropped: UInt64 = 0

  /// The number of bytes that have not been taken.
  var count: Int { bytes.count - position }
  /// The position of the next byte in the stream.
  var offset: UInt64 { dropped + UInt64(position) }
  /// The number of stream bytes so far.
  var end: UInt64 { dropped + UInt64(bytes.count) }

  /// Adds new bytes, and drops those that were taken.
  mutating func append(_ new: UnsafeRawBufferPointer) {
    dropped += UInt64(position)
    bytes.removeSubrange(..<position)
    position = 0
    bytes += new
  }

  /// Takes a number of bytes.
  ///
  /// - Returns: their range in `bytes`, valid until something is appended.
  mutating func take(_ count: Int) -> Range<Int> {
    defer { position += count }
    return position..<position + count
  }
}
