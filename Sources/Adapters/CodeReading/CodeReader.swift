import Encoding
package import SystemIO

/// Reads codes from a picture, or from a camera as they come into view.
///
/// A picture may come from anybody, and C libraries read it. So a separate process reads it that can do nothing else
/// (`stepctl-qr`), and only the content of codes comes back.
package struct CodeReader: ~Copyable {
  private let source: String
  private let deadline: Instant?
  private let decoder: HelperProcess

  /// - Parameters:
  ///   - patience: how long to look through a camera.
  ///   - interruption: ends a wait.
  ///   - decoder: the path of stepctl-qr, if it is not beside this program.
  package init(
    _ source: borrowing CodeSource, patience: Duration, interruption: Interruption? = nil, decoder: String? = nil
  ) throws(CodeReaderError) {
    let deadline: Instant? = source.isCamera ? .now + patience : nil
    let program: String
    do {
      program = if let decoder { decoder } else { try ChildProcess.program("stepctl-qr") }
    } catch {
      throw .noDecoder
    }
    let reader: HelperProcess
    do {
      reader = try HelperProcess(
        program, arguments: [source.isCamera ? "camera" : "picture"], standardInput: source.file.number,
        longest: DecoderReply.longest, interruption: interruption)
    } catch .system(let error) {
      throw .system(error)
    } catch {
      throw .gaveUp(source.name)
    }
    // Last, because Swift 6.2 may destroy what has a value twice when an initializer throws.
    self.source = source.name
    self.deadline = deadline
    self.decoder = reader
  }

  /// The content of the next code, each code once; nil if there are no more. A camera never ends.
  ///
  /// - Parameter progress: called about every second with the time that is left for the camera.
  package mutating func next(progress: (Duration) -> Void = { _ in }) throws(CodeReaderError) -> [UInt8]? {
    while true {
      let left = deadline.map { Instant.now.duration(to: $0) }
      if let left { progress(left) }
      switch try reply(until: left.map { .now + min($0, .seconds(1)) }) {
      case .code(let content): return content
      case .flaw(let flaw): throw .flaw(flaw, source)
      case .end: return nil
      case nil: if let deadline, deadline <= .now { throw .timedOut(source) }
      }
    }
  }

  /// Nil at the deadline.
  private func reply(until deadline: Instant?) throws(CodeReaderError) -> DecoderReply? {
    do {
      return try decoder.next(until: deadline).map { body throws(MalformedMessage) in try DecoderReply(body: body) }
    } catch HelperProcess.Failure.interrupted {
      throw .interrupted
    } catch {
      throw .gaveUp(source)
    }
  }
}
