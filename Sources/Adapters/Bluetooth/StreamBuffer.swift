/// The bytes of a stream that came and were not taken yet, and where in the stream they are.
struct StreamBuffer: Sendable {
  /// Those that were not taken begin at `position`.
  private(set) var bytes: [UInt8] = []
  private(set) var position = 0
  /// How many bytes of the stream came before `bytes`.
  private var dropped: UInt64 = 0

  /// How many bytes were not taken yet.
  var count: Int { bytes.count - position }
  /// Where in the stream the next byte is.
  var offset: UInt64 { dropped + UInt64(position) }
  /// How many bytes of the stream came so far.
  var end: UInt64 { dropped + UInt64(bytes.count) }

  /// Adds what was read, and lets go of what was taken.
  mutating func append(_ new: UnsafeRawBufferPointer) {
    dropped += UInt64(position)
    bytes.removeSubrange(..<position)
    position = 0
    bytes += new
  }

  /// Takes so many bytes.
  ///
  /// - Returns: where they are in `bytes`, until something is appended.
  mutating func take(_ count: Int) -> Range<Int> {
    defer { position += count }
    return position..<position + count
  }
}
