package import ArgumentParser
import Configuration
import Glibc
import SystemIO

/// The frame of a program: parse, run, and say in one line why it failed.
package enum Program {
  /// - Parameter explain: makes a `CommandFailure` or `Interrupted` of an error of the program's own modules, and
  ///   gives any other back as it is.
  package static func run<Root: ParsableCommand>(
    _ root: Root.Type, explain: (any Error) -> any Error
  ) -> Never {
    do {
      var command = try Root.parseAsRoot()
      try command.run()
      exit(ExitStatus.done.rawValue)
    } catch {
      end(root, explain(error))
    }
  }

  private static func end<Root: ParsableCommand>(_ root: Root.Type, _ error: any Error) -> Never {
    let failure: CommandFailure
    switch error {
    case let error as CommandFailure: failure = error
    case let error as ConfigurationError: failure = CommandFailure(error)
    case let error as SystemError: failure = CommandFailure(error)
    case let error as Interrupted: Interruption.die(of: error.signal ?? Interruption.pending ?? SIGINT)
    case let error as Ended: exit(error.status.rawValue)
    // Help, version and usage errors are ArgumentParser's, which ends with 64 for the last (EX_USAGE).
    default: root.exit(withError: error)
    }
    Console.report(failure, program: root.configuration.commandName ?? "")
    exit(failure.status.rawValue)
  }
}
