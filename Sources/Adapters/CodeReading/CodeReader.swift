import Glibc
package import SystemIO

/// Reads codes from a picture, or from a camera as they come into view.
///
/// A picture is whatever somebody shows or sends, and C libraries read it: so they do in a process of their own that
/// can do nothing but that (`stepctl-qr`), and of which only the content of codes comes back.
package struct CodeReader: ~Copyable {
  private let source: String
  private let deadline: ContinuousClock.Instant?
  private let interruption: Interruption?
  private let child: ChildProcess
  private var replies = DecoderReplies()

  /// - Parameters:
  ///   - patience: how long to look through a camera.
  ///   - interruption: what ends a wait.
  ///   - decoder: the path of stepctl-qr, where it is not beside this program.
  package init(
    _ source: borrowing CodeSource, patience: Duration, interruption: Interruption? = nil, decoder: String? = nil
  ) throws(CodeReaderError) {
    self.source = source.name
    self.interruption = interruption
    deadline = source.isCamera ? .now + patience : nil
    let arguments = [source.isCamera ? "camera" : "picture"]
    let descriptor = source.file.number
    let program = if let decoder { decoder } else { try Self.installed() }
    child = try rethrowing { () throws(SystemError) in
      try ChildProcess(program, arguments: arguments, standardInput: descriptor)
    }
  }

  private static func installed() throws(CodeReaderError) -> String {
    do throws(SystemError) { return try ChildProcess.program("stepctl-qr") } catch { throw .noDecoder }
  }

  /// The content of the next code, each once; nil when there are no more. A camera has no last one.
  ///
  /// - Parameter progress: is told every second or so how much time is left to look through a camera.
  package mutating func next(progress: (Duration) -> Void = { _ in }) throws(CodeReaderError) -> [UInt8]? {
    while true {
      let reply: DecoderReply?
      do throws(DecoderReplies.Malformed) { reply = try replies.next() } catch { throw .gaveUp(source) }
      switch reply {
      case .code(let content): return content
      case .flaw(let flaw): throw .flaw(flaw, source)
      case .end: return nil
      case nil: try read(progress)
      }
    }
  }

  private mutating func read(_ progress: (Duration) -> Void) throws(CodeReaderError) {
    let waiting = [child.output.number] + (interruption.map { [$0.number] } ?? [])
    var isReady = false
    while !isReady {
      let left = deadline.map { ContinuousClock.now.duration(to: $0) }
      if let left { progress(left) }
      let pause = left.map { ContinuousClock.now + min($0, .seconds(1)) }
      let ready = try rethrowing { () throws(SystemError) in try waitReadable(waiting, until: pause) }
      if ready.count > 1, ready[1] { throw .interrupted }
      isReady = ready[0]
      if !isReady, let deadline, deadline <= .now { throw .timedOut(source) }
    }
    var chunk = [UInt8](repeating: 0, count: 8192)
    let output = child.output.number
    let count = try rethrowing { () throws(SystemError) in
      try check("read", source) { Glibc.read(output, &chunk, chunk.count) }
    }
    guard count > 0 else { throw .gaveUp(source) }
    replies.append(chunk[..<count])
  }
}
