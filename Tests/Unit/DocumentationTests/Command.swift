import Foundation
import TestSupport

/// A command as `--experimental-dump-help` describes it (ArgumentParser's ToolInfoV0).
struct Command: Decodable {
  let commandName: String
  let superCommands: [String]?
  private let known: [Argument]?
  let subcommands: [Command]?

  /// What people are shown, by `help` or by `help --all`.
  var arguments: [Argument]? { known?.filter { $0.shouldDisplay || $0.abstract != nil } }

  private enum CodingKeys: String, CodingKey {
    case commandName, superCommands, subcommands
    case known = "arguments"
  }

  struct Argument: Decodable {
    let kind: Kind
    let names: [Name]?
    let valueName: String?
    let defaultValue: String?
    let allValues: [String]?
    let abstract: String?
    let isOptional: Bool
    /// False for what only `help --all` shows, and, without a text, for what only a script of before still types, to be
    /// told what to type now.
    let shouldDisplay: Bool

    enum Kind: String, Decodable {
      case positional, option, flag
    }

    struct Name: Decodable {
      let kind: String
      let name: String
    }

    /// The names as they follow one dash, which is how mdoc's `Fl` takes them: `q`, `-quiet`.
    var flags: Set<String> { Set((names ?? []).map { $0.kind == "long" ? "-\($0.name)" : $0.name }) }

    /// What stands for it in messages.
    var title: String { flags.isEmpty ? valueName ?? "" : flags.map { "-\($0)" }.sorted().joined(separator: "/") }

    /// What holds when it is not given: ArgumentParser's own note, or the one in the text, `(default: 10)`.
    var fallback: String? {
      if kind == .flag { return nil }
      if let defaultValue { return defaultValue }
      guard let text = abstract, let start = text.range(of: "(default: "),
        let end = text.range(of: ")", range: start.upperBound..<text.endIndex)
      else { return nil }
      return String(text[start.upperBound..<end.lowerBound])
    }
  }

  /// The words that are typed: `stepctl provision vehicle`.
  var path: [String] { (superCommands ?? []) + [commandName] }

  /// Without `help`, which ArgumentParser adds everywhere.
  var children: [Command] { (subcommands ?? []).filter { $0.commandName != "help" } }

  var isGroup: Bool { !children.isEmpty }

  /// It and all below it.
  var tree: [Command] { [self] + children.flatMap(\.tree) }

  /// The file of its manual page: section 8 is for daemons.
  var page: String { "\(path.joined(separator: "-")).\(path[0] == "stepd" ? 8 : 1)" }

  /// What a built program says of itself.
  static func described(by name: String) throws -> Command {
    struct Dump: Decodable {
      let command: Command
    }
    let outcome = try Subprocess.run(product: name, ["--experimental-dump-help"])
    return try JSONDecoder().decode(Dump.self, from: Data(outcome.output.utf8)).command
  }

  /// Every command of both programs.
  static let all = Result { try ["stepctl", "stepd"].flatMap { try described(by: $0).tree } }
}
