import Configuration
import Domain
import Encoding
import Glibc
import Synchronization
import SystemIO
import Terminal
import TestSupport

@testable import StepCommands

/// Where a test types commands: they run in process, in a home of their own, at a time of their own.
struct Shell {
  let folder: TemporaryFolder
  var environment: [String: String]
  /// Of the terminal that everything is printed to; nil where that is a pipe.
  var size: Screen.Size?
  /// What is typed as answers, a line each; nil where standard input is no terminal and has ended.
  var answers: [String]?
  /// Why nothing can be printed any more: an errno.
  var outputFault: Int32?
  var now = UnixTime(microseconds: 1_795_275_000_000_000)
  var isInterrupted = false

  init() throws {
    folder = try TemporaryFolder()
    environment = ["HOME": "\(folder.path)/home"]
  }

  /// What a command printed, and how it ended.
  struct Ended {
    let output: String
    let errors: String
    let ending: Program.Ending

    var lines: [String] { output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init) }
    var notes: [String] { errors.split(separator: "\n").map(String.init) }
    /// The objects of a command that prints JSON.
    var objects: [JSON] { get throws { try lines.map { try JSON(parsing: Array($0.utf8), maximumDepth: 8) } } }
  }

  /// Runs `stepctl` with some arguments.
  func types(_ arguments: String...) -> Ended { types(arguments) }

  func types(_ arguments: [String]) -> Ended {
    let output = Record(size: size, fault: outputFault)
    let errors = Record(size: size, fault: nil)
    let (now, isInterrupted) = (now, isInterrupted)
    let context = Context(
      output: output, errors: errors, input: Answers(answers), environment: environment,
      folders: ConfigurationFolders(environment: environment, system: "\(folder.path)/etc"),
      clocks: Context.Clocks(wall: { now }, steady: { .now }),
      interruption: { () throws(SystemError) in
        let interruption = try Interruption.manual()
        if isInterrupted { interruption.interrupt() }
        return interruption
      })
    let ending = Program.run(StepctlCommand.self, arguments, in: context, explain: StepctlCommand.explain)
    return Ended(output: output.text, errors: errors.text, ending: ending)
  }

  /// A file's path in the folder.
  func path(_ name: String) -> String { "\(folder.path)/\(name)" }
}

/// What was printed.
final class Record: Output {
  let size: Screen.Size?
  private let fault: Int32?
  private let bytes = Mutex<[UInt8]>([])

  init(size: Screen.Size?, fault: Int32?) {
    self.size = size
    self.fault = fault
  }

  func write(_ bytes: some Sequence<UInt8>) throws(SystemError) {
    if let fault { throw SystemError("write to", "standard output", code: fault) }
    let written = Array(bytes)
    self.bytes.withLock { $0 += written }
  }

  var text: String { String(decoding: bytes.withLock { $0 }, as: UTF8.self) }
}

/// Answers that somebody types, one at a time.
final class Answers: Input {
  let isTerminal: Bool
  private let lines: Mutex<[String]>

  init(_ lines: [String]?) {
    isTerminal = lines != nil
    self.lines = Mutex(lines ?? [])
  }

  func discardTyped() {}

  func read(until interruption: Interruption) throws -> [UInt8] {
    if interruption.isPending { throw Interrupted() }
    return lines.withLock { $0.isEmpty ? [] : Array("\($0.removeFirst())\n".utf8) }
  }
}
