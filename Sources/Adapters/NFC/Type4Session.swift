import Tags

/// A Type 4 tag while it stays selected.
struct Type4Session {
  private let reader: NFCReader
  private let deadline: ContinuousClock.Instant?

  /// What a command and its answer may carry, so that both fit into a frame of the chip.
  private static let maximumData = 240

  /// - Parameter deadline: when it no longer counts as an answer; nil for never.
  init(_ reader: NFCReader, until deadline: ContinuousClock.Instant? = nil) {
    self.reader = reader
    self.deadline = deadline
  }

  func read() throws(NFCError) -> Type4Contents {
    var reading = Type4Reading(maximumData: Self.maximumData)
    return try finish { answer throws(NDEFError) in try reading.next(after: answer) }
  }

  /// - Parameter contents: what `read` gave in this session.
  func write(_ message: NDEFMessage, to contents: Type4Contents) throws(NFCError) {
    var writing: Type4Writing
    do throws(NDEFError) {
      writing = try Type4Writing(message, to: contents, maximumData: Self.maximumData)
    } catch {
      throw .content(error)
    }
    try finish { answer throws(NDEFError) in try writing.next(after: answer) }
  }

  /// Sends command after command, until all is known or done.
  private func finish<Value>(
    _ next: ([UInt8]?) throws(NDEFError) -> Type4Step<Value>
  ) throws(NFCError) -> Value {
    var answer: [UInt8]?
    while true {
      if let deadline, deadline <= .now { throw .noAnswer }
      let step: Type4Step<Value>
      do throws(NDEFError) { step = try next(answer) } catch { throw .content(error) }
      switch step {
      case .done(let value): return value
      case .send(let command): answer = try send(command)
      }
    }
  }

  func send(_ command: [UInt8]) throws(NFCError) -> [UInt8] {
    guard case .answer(let answer) = try reader.exchange(command, .easy) else { throw .noAnswer }
    return answer
  }
}
