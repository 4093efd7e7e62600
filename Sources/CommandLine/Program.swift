package import ArgumentParser
import Configuration
import Domain
import Glibc
import SystemIO

/// The frame of a program: parse, run, and say in one line why it failed.
package enum Program {
  /// - Parameter explain: makes a `CommandFailure` or `Interrupted` of an error of the program's own modules, and
  ///   gives any other back as it is.
  package static func run<Root: ParsableCommand>(
    _ root: Root.Type, explain: (any Error) -> any Error
  ) -> Never {
    occupyStandardDescriptors()
    do {
      try checkCommand(of: Root.self)
      var command = try Root.parseAsRoot()
      try command.run()
      exit(ExitStatus.done.rawValue)
    } catch {
      end(root, explain(error))
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

  /// Of a mistyped command ArgumentParser says that it does not know the option behind it, which nobody mistyped.
  private static func checkCommand(of root: any ParsableCommand.Type) throws(CommandFailure) {
    var command = root
    var path = root._commandName
    for word in CommandLine.arguments.dropFirst() {
      let known = command.configuration.subcommands
      guard !known.isEmpty, !word.hasPrefix("-"), word != "help" else { return }
      guard let next = known.first(where: { $0._commandName == word }) else {
        let near = Spelling.nearest(to: word, among: known.map { $0._commandName })
        throw CommandFailure(
          .usage, "there is no command `\(path) \(word)`",
          hint: near.map { "did you mean `\(path) \($0)`?" } ?? "`\(path) --help` lists those there are")
      }
      command = next
      path += " \(word)"
    }
  }

  private static func end<Root: ParsableCommand>(_ root: Root.Type, _ error: any Error) -> Never {
    let failure: any Failure
    switch error {
    case let error as any Failure: failure = error
    case let error as ConfigurationError: failure = CommandFailure(error)
    case let error as Interrupted: Interruption.die(of: error.signal ?? Interruption.pending ?? SIGINT)
    case let error as Ended: exit(error.status.rawValue)
    // Help, version and usage errors are ArgumentParser's, which ends with 64 for the last (EX_USAGE).
    default: root.exit(withError: error)
    }
    Console.report(failure, program: root.configuration.commandName ?? "")
    exit(failure.exitStatus.rawValue)
  }
}
