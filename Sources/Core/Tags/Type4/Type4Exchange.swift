import Encoding
package import NDEF

/// The next step with a Type 4 tag.
package enum Type4Step<Value> {
  /// Send this C-APDU. Its answer, with the status word, goes to `next(after:)`.
  case send([UInt8])
  case done(Value)
}

extension Type4Step: Sendable where Value: Sendable {}
extension Type4Step: Equatable where Value: Equatable {}

/// Reads a Type 4 tag (NFC Forum, Type 4 Tag Operation 2.0, 5.4.1 and 5.4.6): returns each command, and takes its
/// answer.
///
/// Reading always ends: each answer adds at least one byte, and at most 32 768 bytes of a file can be reached.
package struct Type4Reading: Sendable {
  private let maximumData: Int
  private let takesExcessiveLength: Bool
  private var command = Type4Command.selectApplication(version1: false)
  private var version1 = false
  private var container: [UInt8] = []
  private var file: Type4File?
  /// The NDEF file, as far as it was read.
  private var content: [UInt8] = []

  /// - Parameters:
  ///   - maximumData: the most data that the reader can receive in one answer, bytes; at most 255.
  ///   - takesExcessiveLength: whether a length that the file cannot hold is part of the result, as it is for a writer,
  ///     which can set it right. Otherwise it is an error.
  package init(maximumData: Int = 240, takesExcessiveLength: Bool = false) {
    precondition((15...255).contains(maximumData))
    self.maximumData = maximumData
    self.takesExcessiveLength = takesExcessiveLength
  }

  /// - Parameter answer: the R-APDU to the last command; nil at first.
  /// - Throws: `refused`, `malformedAnswer`, and errors of the tag's content. After an error, the reading is over.
  package mutating func next(after answer: [UInt8]?) throws(NDEFError) -> Type4Step<Type4Contents> {
    if let answer, let contents = try take(answer) { return .done(contents) }
    return .send(command.bytes)
  }

  private mutating func take(_ answer: [UInt8]) throws(NDEFError) -> Type4Contents? {
    let data: [UInt8]
    do {
      data = try command.data(of: answer)
    } catch {
      // 5.5: a tag without the application of version 2 may have the one of version 1.
      guard case .selectApplication(version1: false) = command, case .refused = error else { throw error }
      version1 = true
      command = .selectApplication(version1: true)
      return nil
    }
    switch command {
    case .selectApplication:
      command = .selectFile(0xE103, version1: version1)
    case .selectFile:
      let count = file.map(\.lengthSize) ?? 15
      command = .readBinary(offset: 0, count: count)
    case .readBinary:
      if let file {
        content += data
        return try read(file)
      }
      container += data
      let missing = Type4File.containerSize(container) - container.count
      if missing > 0 {
        command = .readBinary(offset: container.count, count: missing)
      } else {
        let file = try Type4File(container: container)
        self.file = file
        command = .selectFile(file.id, version1: version1)
      }
    case .updateBinary:
      break
    }
    return nil
  }

  /// Requests the next missing part of the file, or returns the message once it is complete.
  private mutating func read(_ file: Type4File) throws(NDEFError) -> Type4Contents? {
    var missing = file.lengthSize - content.count
    if missing <= 0 {
      let length = Int(bigEndianBytes: content.prefix(file.lengthSize))
      guard length <= file.capacity else {
        let contents = Type4Contents(file: file, message: [], excessiveLength: length)
        if !takesExcessiveLength, let fault = contents.fault { throw .malformedTag(fault, offset: 0) }
        return contents
      }
      missing += length
      if missing == 0 {
        return Type4Contents(file: file, message: Array(content.dropFirst(file.lengthSize)), excessiveLength: nil)
      }
    }
    command = .readBinary(offset: content.count, count: min(missing, file.maximumRead, maximumData))
    return nil
  }
}

/// Writes a Type 4 tag right after reading it, while its NDEF file is still selected (NFC Forum, Type 4 Tag Operation
/// 2.0, 5.4.7): a length of 0, the message, its length. If the tag leaves in between, it is empty.
package struct Type4Writing: Sendable {
  private var commands: ArraySlice<Type4Command> = []
  private var last: Type4Command?

  /// - Parameter maximumData: the most data that the reader can send in one command, bytes; at most 255.
  /// - Throws: `readOnly`, `writeProtected` or `tooSmall`.
  package init(_ message: NDEFMessage, to tag: Type4Contents, maximumData: Int = 240) throws(NDEFError) {
    precondition((15...255).contains(maximumData))
    let file = tag.file
    // 5.1.2.1: FFh means never; 80h to FEh are the manufacturer's own rules.
    guard file.writeAccess != 0xFF else { throw .readOnly }
    guard file.isWritable else { throw .writeProtected(access: file.writeAccess) }
    let bytes = message.bytes
    guard bytes.count <= file.capacity else { throw .tooSmall(needed: bytes.count, available: file.capacity) }
    guard bytes != tag.message || tag.excessiveLength != nil else { return }
    // The length is written in one command, even if the tag states that a command carries less.
    let size = max(1, min(file.maximumWrite, maximumData))
    if !tag.message.isEmpty || tag.excessiveLength != nil { commands.append(Self.length(0, of: file)) }
    for start in stride(from: 0, to: bytes.count, by: size) {
      let part = Array(bytes[start..<min(start + size, bytes.count)])
      commands.append(.updateBinary(offset: file.lengthSize + start, part))
    }
    commands.append(Self.length(bytes.count, of: file))
  }

  /// Sets the length to 0, and leaves the rest unchanged.
  package init(emptying tag: Type4Contents) { commands = [Self.length(0, of: tag.file)] }

  private static func length(_ count: Int, of file: Type4File) -> Type4Command {
    .updateBinary(offset: 0, count.bigEndianBytes.suffix(file.lengthSize))
  }

  /// - Parameter answer: the R-APDU to the last command; nil at first.
  /// - Throws: `refused` or `malformedAnswer`. After an error, the tag must be read again.
  package mutating func next(after answer: [UInt8]?) throws(NDEFError) -> Type4Step<Void> {
    if let answer, let last { _ = try last.data(of: answer) }
    last = commands.popFirst()
    return last.map { .send($0.bytes) } ?? .done(())
  }
}
