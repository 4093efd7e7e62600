public import ArgumentParser
package import Domain
import Encoding
import Glibc
package import SystemIO

/// The properties of a program besides its commands.
public struct ProgramText {
  /// Runs if no command was typed.
  var bare: (any ParsableCommand.Type)?
  /// Has the commands that `help` lists; nil if it lists what `help --all` lists.
  var brief: (any ParsableCommand.Type)?
  /// Prepares what the typed command will need, on other threads. Nothing has been read yet, so this must not fail.
  var ahead: @Sendable ([String]) -> Void
  /// Reads frequent command lines without ArgumentParser, and returns what runs them; nil for those that ArgumentParser
  /// must read.
  var plain: ([String]) -> (() throws -> Void)?
  /// Example command lines and their effects, for a command with its groups: `stepctl provision tag`.
  var examples: @Sendable (String) -> [(typed: String, does: String)]
  /// The one page of the manual that has all commands; nil if each has a page of its own.
  var manual: String?
  /// What `--radio` takes, for `help --all`.
  var radios: [(typed: String, does: String)]
  /// The libraries that it uses, one line each.
  var libraries: @Sendable () -> [String]
  /// Runs a command that was read.
  package var execute: (any ParsableCommand) throws -> Void

  public init(
    bare: (any ParsableCommand.Type)? = nil,
    brief: (any ParsableCommand.Type)? = nil,
    ahead: @escaping @Sendable ([String]) -> Void = { _ in },
    plain: @escaping ([String]) -> (() throws -> Void)? = { _ in nil },
    examples: @escaping @Sendable (String) -> [(typed: String, does: String)] = { _ in [] },
    manual: String? = nil,
    radios: [(typed: String, does: String)] = [],
    libraries: @escaping @Sendable () -> [String] = { [] },
    execute: @escaping (any ParsableCommand) throws -> Void = { command in
      var command = command
      try command.run()
    }
  ) {
    self.bare = bare
    self.brief = brief
    self.ahead = ahead
    self.plain = plain
    self.examples = examples
    self.manual = manual
    self.radios = radios
    self.libraries = libraries
    self.execute = execute
  }

  /// The build's commit, its processor and the libraries, one line each.
  var build: [String] {
    (Program.commit.map { ["commit \($0)"] } ?? []) + ["architecture \(Program.architecture)"] + libraries()
  }
}

/// The frame of a program: parses, runs, and reports a failure in one line.
public enum Program {
  /// The end of a program.
  package enum Ending: Equatable, Sendable {
    case status(ExitStatus)
    /// Ends as if the signal had ended the process.
    case signal(Int32)
  }

  /// Runs the typed command, and ends the process.
  ///
  /// - Parameter locksMemory: whether it runs for a long time with secrets in memory.
  public static func main(
    _ root: any ParsableCommand.Type, _ about: ProgramText = ProgramText(), locksMemory: Bool = false
  ) -> Never {
    occupyStandardDescriptors()
    // If a file exceeds its size limit, this makes the write fail like a full disk, with clean-up, instead of ending
    // the process (setrlimit(2)).
    signal(SIGXFSZ, SIG_IGN)
    Confinement.keepSecrets(locksMemory: locksMemory)
    let arguments = ProgramArguments.typed
    about.ahead(arguments)
    switch run(root, arguments, .process, about) {
    case .status(let status): exit(status.rawValue)
    case .signal(let number): Interruption.die(of: number)
    }
  }

  /// Becomes another of our programs. If that cannot be started, prints why, and ends.
  package static func replace(
    by name: String, calledAs shown: String, _ arguments: [String], or failure: (SystemError) -> CommandFailure
  ) -> Never {
    occupyStandardDescriptors()
    let error: SystemError
    do throws(SystemError) {
      let path = try ChildProcess.program(name)
      var words: [UnsafeMutablePointer<CChar>?] = ([shown] + arguments).map { strdup($0) }
      words.append(nil)
      execv(path, words)
      error = SystemError("start", path)
    } catch let reason {
      error = reason
    }
    let failure = failure(error)
    let streams = StandardStreams.process
    if arguments.prefix(while: { $0 != "--" }).contains("--json") {
      try? Console(streams).result(failure.object())
    }
    streams.errors.report(failure, program: shown)
    exit(failure.exitStatus.rawValue)
  }

  /// Runs the typed command, and prints to the streams what went wrong.
  package static func run(
    _ root: any ParsableCommand.Type, _ arguments: [String], _ streams: StandardStreams,
    _ about: ProgramText = ProgramText()
  ) -> Ending {
    var line = CommandTyped(root, arguments)
    var isPlain = false
    do {
      // ArgumentParser would use two thirds of all instructions for this.
      if arguments == ["--version"], !root.configuration.version.isEmpty {
        try Console(streams).result(line.completed(root.configuration.version, about))
        return .status(.done)
      }
      if let run = about.plain(arguments) {
        isPlain = true
        try run()
        return .status(.done)
      }
      try line.findCommand()
      if line.hasRepetition, let mistake = line.mistake() { throw mistake }
      let command =
        if let bare = about.bare, line.isBare { try bare.parse(line.arguments) as any ParsableCommand } else {
          try root.parseAsRoot(line.arguments)
        }
      try about.execute(command)
      return .status(.done)
    } catch {
      if isPlain { try? line.findCommand() }
      return report(error, of: line, streams, about)
    }
  }

  /// Opens each closed standard descriptor (`>&-`) as one that fails like a closed one. Otherwise the next file or
  /// connection would get that number, and the output would be written into it.
  private static func occupyStandardDescriptors() {
    for (number, flags) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY)]
    where fcntl(number, F_GETFD) == -1 {
      _ = open("/dev/null", flags)
    }
  }

  /// Prints the error lines of a failed command, and the JSON object if JSON was requested.
  package static func report(
    _ error: any Error, of line: CommandTyped, _ streams: StandardStreams, _ about: ProgramText = ProgramText()
  ) -> Ending {
    let root = line.root
    let failure: any Failure
    var isTold = !line.wantsJSON
    switch error {
    case let error as Ended: return .status(error.status)
    case let error as Told: (failure, isTold) = (error.failure, true)
    case let error as any Failure: failure = error
    // ArgumentParser prints help, version and usage errors.
    default:
      if root.exitCode(for: error).isSuccess {
        let columns = streams.environment["COLUMNS"].flatMap(Int.init) ?? streams.output.size?.columns ?? 0
        // ArgumentParser's first column takes 26 characters. With slightly more it leaves out the second column.
        let width = columns > 0 ? max(columns, 40) : 80
        do {
          var text = root.fullMessage(for: error, columns: width)
          if let brief = about.brief, !line.showsAll, line.isOverview(text) { text = brief.helpMessage(columns: width) }
          if text == version, line.wantsJSON {
            try Console(streams).result(["version": .string(version), "build": .array(about.build.map(JSON.string))])
          } else {
            try Console(streams).result(line.completed(text, about))
          }
          return .status(.done)
        } catch {
          return report(error, of: line, streams, about)
        }
      }
      let code = root.exitCode(for: error)
      let mistake = code == .validationFailure ? line.mistake() : nil
      failure = mistake ?? CommandFailure(ArgumentParser: root.message(for: error), code, line)
    }
    if failure.isInterruption {
      return .signal((failure as? Interrupted)?.signal ?? Interruption.pending ?? SIGINT)
    }
    // If the result cannot be written, neither can this object, and the error line says so.
    if !isTold { try? Console(streams).result(failure.object()) }
    streams.errors.report(failure, program: root.typedName)
    return .status(failure.exitStatus)
  }
}

extension ParsableCommand {
  /// The typed name of a command comes from its type, unless the configuration sets it.
  static var typedName: String { configuration.commandName ?? "\(self)".lowercased() }
}

extension CommandFailure {
  /// An error of ArgumentParser in our form: lower case, no full stop, names in double quotes, and the advice as a
  /// hint.
  fileprivate init(ArgumentParser text: String, _ code: ExitCode, _ line: CommandTyped) {
    var text = text.split(whereSeparator: \.isNewline).joined(separator: " ").withDoubleQuotes
    guard code == .validationFailure else {
      self.init(.failure, text)
      return
    }
    var hint: String?
    for (advice, words) in [(". Did you mean ", "did you mean "), (". Please provide one of ", "use ")] {
      guard let range = text.range(ofBytes: advice) else { continue }
      hint = (words + text[range.upperBound...].asClause).substituting("\" and \"", by: "\" or \"")
      text = String(text[..<range.lowerBound])
    }
    let message = text[...].asClause
    let explanation = line.explanation(of: message).map { $0[...].asClause }
    self.init(.usage, message, hint: hint ?? explanation ?? "`\(line.typed) --help` explains how to use it")
  }
}

extension String {
  /// Replaces single quotes around words with double ones; an apostrophe stays.
  fileprivate var withDoubleQuotes: String {
    var result = ""
    for (index, character) in zip(indices, self) {
      let before = index == startIndex ? " " : self[self.index(before: index)]
      let following = self.index(after: index)
      let after = following == endIndex ? " " : self[following]
      let isQuote = character == "'" && (" (".contains(before) || " ,.:;)?".contains(after))
      result.append(isQuote ? "\"" : character)
    }
    return result
  }
}

extension Substring {
  /// A sentence in the form after a colon: without its capital and its full stop.
  var asClause: String {
    let text = last == "." ? dropLast() : self
    // An abbreviation stays as it is.
    if text.dropFirst().first?.isUppercase == true { return String(text) }
    return text.prefix(1).lowercased() + text.dropFirst()
  }
}
