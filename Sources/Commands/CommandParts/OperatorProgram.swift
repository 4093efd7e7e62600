import Domain
import Glibc
import SystemIO
import Terminal

/// `stepctl-operator`: the program of technicians and operators. `stepctl` becomes it for their commands, as git does
/// for some of its own.
package enum OperatorProgram {
  static let name = "stepctl-operator"

  /// Whether only that program can answer: for its commands, and, where it is installed, for what tells of all
  /// commands.
  package static func isMeant(by arguments: [String]) -> Bool {
    if TechnicianCommand(in: arguments) != nil { return true }
    guard let first = arguments.first, tellsOfAll(first) else { return false }
    return (try? ChildProcess.program(name)) != nil
  }

  private static func tellsOfAll(_ option: String) -> Bool {
    option.hasPrefix("--generate-completion-script") || option == "--experimental-dump-help"
  }

  /// Puts that program in the place of this one. The process, its terminal and its signals stay the same.
  package static func become(with arguments: [String]) -> Never {
    // Its messages name the program that was typed.
    Program.replace(by: name, calledAs: "stepctl", arguments) { _ in
      CommandFailure(
        .unavailable, "\(name) is not installed: this command is for technicians and operators",
        hint: "install Debian's package \(name)")
    }
  }
}
