/// Reads a Type 4 tag (NFC Forum, Type 4 Tag Operation 2.0, 5.4.1 and 5.4.6): says each command, takes each answer.
///
/// It ends: each answer brings it nearer to the end by a byte or more, and a file has at most 32 768 that can be reached.
package struct Type4Reading: Sendable {
  private let maximumData: Int
  private var command = Type4Command.selectApplication(version1: false)
  private var version1 = false
  private var container: [UInt8] = []
  private var file: Type4File?
  /// The NDEF file from its beginning on.
  private var content: [UInt8] = []

  /// - Parameter maximumData: how many bytes of data the reader can take in one answer, at most 255.
  package init(maximumData: Int = 240) {
    precondition((15...255).contains(maximumData))
    self.maximumData = maximumData
  }

  /// - Parameter answer: the R-APDU to the last command; nil at first.
  /// - Throws: `refused`, `malformedAnswer`, and what is wrong with the tag. Then it is over.
  package mutating func next(after answer: [UInt8]?) throws(NDEFError) -> Type4Step<Type4Contents> {
    if let answer, let contents = try take(answer) { return .done(contents) }
    return .send(command.bytes)
  }

  private mutating func take(_ answer: [UInt8]) throws(NDEFError) -> Type4Contents? {
    let data: [UInt8]
    do throws(NDEFError) {
      data = try command.data(of: answer)
    } catch {
      // 5.5: a tag without the application of version 2 may have that of version 1.
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
    case .readBinary where file == nil:
      container += data
      let missing = Type4File.containerSize(container) - container.count
      if missing > 0 {
        command = .readBinary(offset: container.count, count: missing)
      } else {
        let file = try Type4File(container: container)
        self.file = file
        command = .selectFile(file.id, version1: version1)
      }
    case .readBinary:
      content += data
      return try read(file!)
    case .updateBinary:
      break
    }
    return nil
  }

  /// Asks for what is missing of the file, or gives the message when it is whole.
  private mutating func read(_ file: Type4File) throws(NDEFError) -> Type4Contents? {
    var missing = file.lengthSize - content.count
    if missing <= 0 {
      let length = content.prefix(file.lengthSize).reduce(0) { $0 << 8 | Int($1) }
      guard length <= file.capacity else {
        throw .malformedTag("a message of \(length) bytes where \(file.capacity) fit", offset: 0)
      }
      missing += length
      if missing == 0 { return Type4Contents(file: file, message: Array(content.dropFirst(file.lengthSize))) }
    }
    command = .readBinary(offset: content.count, count: min(missing, file.maximumRead, maximumData))
    return nil
  }
}
