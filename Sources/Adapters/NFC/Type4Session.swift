import NDEF
import SystemIO
import Tags

/// A Type 4 tag while it stays selected.
struct Type4Session {
  private let field: any TagField
  private let deadline: Instant?

  /// The largest data of a command or an answer, so that both fit into a frame of the chip.
  private static let maximumData = 240

  /// - Parameter deadline: when an answer is too late; nil for never.
  init(_ field: any TagField, until deadline: Instant? = nil) {
    self.field = field
    self.deadline = deadline
  }

  /// - Parameter isToBeWritten: whether a length that the file cannot hold is no error, but a part of the contents.
  func read(isToBeWritten: Bool = false) throws -> Type4Contents {
    var reading = Type4Reading(maximumData: Self.maximumData, takesExcessiveLength: isToBeWritten)
    return try finish { try reading.next(after: $0) }
  }

  /// - Parameter contents: the result of `read` in this session.
  func write(_ message: NDEFMessage, to contents: Type4Contents) throws {
    var writing = try Type4Writing(message, to: contents, maximumData: Self.maximumData)
    try finish { try writing.next(after: $0) }
  }

  /// Sets the length of the message to 0.
  ///
  /// - Parameter contents: the result of `read` in this session.
  func empty(_ contents: Type4Contents) throws {
    var writing = Type4Writing(emptying: contents)
    try finish { try writing.next(after: $0) }
  }

  /// Sends one command after the other, until everything is known or done.
  private func finish<Value>(_ next: ([UInt8]?) throws -> Type4Step<Value>) throws -> Value {
    var answer: [UInt8]?
    while true {
      if let deadline, deadline <= .now { throw NFCError.noAnswer }
      switch try next(answer) {
      case .done(let value): return value
      case .send(let command): answer = try send(command)
      }
    }
  }

  func send(_ command: [UInt8]) throws -> [UInt8] {
    guard case .answer(let answer) = try field.exchange(command, .easy) else { throw NFCError.noAnswer }
    return answer
  }
}
