/// Writes a Type 4 tag right after it was read, while its NDEF file is selected (NFC Forum, Type 4 Tag Operation 2.0,
/// 5.4.7): a length of 0, the message, its length. Torn off in the middle, the tag is empty.
package struct Type4Writing: Sendable {
  private var commands: ArraySlice<Type4Command> = []
  private var last: Type4Command?

  /// - Parameter maximumData: how many bytes of data the reader can send in one command, at most 255.
  /// - Throws: `readOnly`, `writeProtected` or `tooSmall`.
  package init(_ message: NDEFMessage, to tag: Type4Contents, maximumData: Int = 240) throws(NDEFError) {
    precondition((15...255).contains(maximumData))
    let file = tag.file
    // 5.1.2.1: FFh is never, 80h to FEh are the manufacturer's own rules.
    guard file.writeAccess != 0xFF else { throw .readOnly }
    guard file.isWritable else { throw .writeProtected(access: file.writeAccess) }
    let bytes = message.bytes
    guard bytes.count <= file.capacity else { throw .tooSmall(needed: bytes.count, available: file.capacity) }
    guard bytes != tag.message else { return }

    func length(_ count: Int) -> Type4Command {
      .updateBinary(offset: 0, (0..<file.lengthSize).reversed().map { UInt8(count >> ($0 * 8) & 0xFF) })
    }
    // The length is written in one command, whatever the tag says that a command can carry.
    let size = max(1, min(file.maximumWrite, maximumData))
    if !tag.message.isEmpty { commands.append(length(0)) }
    for start in stride(from: 0, to: bytes.count, by: size) {
      let part = Array(bytes[start..<min(start + size, bytes.count)])
      commands.append(.updateBinary(offset: file.lengthSize + start, part))
    }
    commands.append(length(bytes.count))
  }

  /// - Parameter answer: the R-APDU to the last command; nil at first.
  /// - Throws: `refused` or `malformedAnswer`. Then it is over, and what the tag holds must be read.
  package mutating func next(after answer: [UInt8]?) throws(NDEFError) -> Type4Step<Void> {
    if let answer, let last { _ = try last.data(of: answer) }
    last = commands.popFirst()
    return last.map { .send($0.bytes) } ?? .done(())
  }
}
