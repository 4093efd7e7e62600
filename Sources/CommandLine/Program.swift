package import ArgumentParser
package import Domain
import Glibc
import SystemIO

/// The frame of a program: parse, run, and say in one line why it failed.
package enum Program {
  /// The version of all programs.
  package static let version = "0.1.0"

  /// How a program ends.
  package enum Ending: Equatable, Sendable {
    case status(ExitStatus)
    /// As if the signal had ended it.
    case signal(Int32)
  }

  /// Runs what was typed, and ends the process.
  ///
  /// - Parameter locksMemory: whether it runs for long with secrets in memory.
  package static func main(_ root: any ParsableCommand.Type, locksMemory: Bool = false) -> Never {
    occupyStandardDescriptors()
    Confinement.keepSecrets(locksMemory: locksMemory)
    switch run(root, Array(CommandLine.arguments.dropFirst()), in: .process) {
    case .status(let status): exit(status.rawValue)
    case .signal(let number): Interruption.die(of: number)
    }
  }

  /// Runs what was typed, in a context that gets the output and the error lines.
  package static func run(
    _ root: any ParsableCommand.Type, _ arguments: [String], in context: Context
  ) -> Ending {
    var typed = root.typedName
    do {
      try follow(arguments, from: root, &typed)
      var command = try root.parseAsRoot(arguments)
      if let command = command as? any ContextCommand { try command.run(in: context) } else { try command.run() }
      return .status(.done)
    } catch {
      return report(error, of: root, typed, context)
    }
  }

  /// Who closes standard output (`>&-`) would have the next file or connection that is opened in its place, and what is
  /// printed written into that. What takes the place here cannot be used, as if it were closed.
  private static func occupyStandardDescriptors() {
    for (number, flags) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY)]
    where fcntl(number, F_GETFD) == -1 {
      _ = open("/dev/null", flags)
    }
  }

  /// Finds the command that was typed. Of a mistyped one ArgumentParser says that it does not know the option behind
  /// it, which nobody mistyped.
  ///
  /// - Parameter typed: becomes the command with its groups: `stepctl provision tag`
  private static func follow(
    _ arguments: [String], from root: any ParsableCommand.Type, _ typed: inout String
  ) throws(CommandFailure) {
    var command = root
    for word in arguments {
      let known = command.configuration.subcommands
      guard !known.isEmpty, !word.hasPrefix("-"), word != "help" else { return }
      guard let next = known.first(where: { $0.typedName == word }) else {
        let near = Spelling.nearest(to: word, among: known.map { $0.typedName })
        throw CommandFailure(
          .usage, "there is no command `\(typed) \(word)`",
          hint: near.map { "did you mean `\(typed) \($0)`?" } ?? "`\(typed) --help` lists the commands")
      }
      command = next
      typed += " \(word)"
    }
  }

  /// Writes the lines that say why a command failed.
  ///
  /// - Parameter typed: the command with its groups, for the hint below a usage error.
  package static func report(
    _ error: any Error, of root: any ParsableCommand.Type, _ typed: String, _ context: Context
  ) -> Ending {
    let failure: any Failure
    switch error {
    case let error as Ended: return .status(error.status)
    case let error as any Failure: failure = error
    // Help, version and usage errors are ArgumentParser's.
    default:
      if root.exitCode(for: error).isSuccess {
        let columns = context.environment["COLUMNS"].flatMap(Int.init) ?? context.output.size?.columns ?? 80
        do {
          try Console(context).result(root.fullMessage(for: error, columns: columns))
          return .status(.done)
        } catch {
          return report(error, of: root, typed, context)
        }
      }
      failure = CommandFailure(ArgumentParser: root.message(for: error), root.exitCode(for: error), typed)
    }
    if failure.isInterruption {
      return .signal((failure as? Interrupted)?.signal ?? Interruption.pending ?? SIGINT)
    }
    context.errors.report(failure, program: root.typedName)
    return .status(failure.exitStatus)
  }
}

extension ParsableCommand {
  /// Every command's type is named for one word, except where the configuration says how it is typed.
  fileprivate static var typedName: String { configuration.commandName ?? "\(self)".lowercased() }
}

extension CommandFailure {
  /// What is ArgumentParser's, in the form of all other errors: lower case, no full stop, names in double quotes, and
  /// what to do as a hint.
  fileprivate init(ArgumentParser text: String, _ code: ExitCode, _ typed: String) {
    var text = text.split(whereSeparator: \.isNewline).joined(separator: " ").withDoubleQuotes
    guard code == .validationFailure else {
      self.init(.failure, text)
      return
    }
    var hint: String?
    for (advice, words) in [(". Did you mean ", "did you mean "), (". Please provide one of ", "use ")] {
      guard let range = text.firstRange(of: advice) else { continue }
      hint = (words + text[range.upperBound...].asClause).replacing("\" and \"", with: "\" or \"")
      text = String(text[..<range.lowerBound])
    }
    self.init(.usage, text[...].asClause, hint: hint ?? "`\(typed) --help` explains how to use it")
  }
}

extension String {
  /// Single quotes around words made double; an apostrophe stays.
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
  /// A sentence as what follows a colon: without its capital and its full stop.
  fileprivate var asClause: String {
    let text = last == "." ? dropLast() : self
    return text.prefix(1).lowercased() + text.dropFirst()
  }
}
