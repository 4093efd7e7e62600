import ArgumentParser
import Encoding

/// Adds what ArgumentParser's completion scripts lack: the commands after `help`, and in zsh a usable variable name for
/// an argument with fixed words. ArgumentParser names that variable `_left|right`, and zsh runs the parts of the name.
struct CompletionScript {
  private let program: String
  /// Each group of commands, as typed after the program's name, and the names of its commands.
  private let groups: [(typed: String, names: String)]

  init(of root: any ParsableCommand.Type) {
    program = root.typedName
    groups = Self.groups(root, "")
  }

  private static func groups(_ group: any ParsableCommand.Type, _ typed: String) -> [(typed: String, names: String)] {
    let commands = group.configuration.subcommands
    guard !commands.isEmpty else { return [] }
    return [(typed, commands.map { $0.typedName }.joined(separator: " "))]
      + commands.flatMap { groups($0, typed.isEmpty ? $0.typedName : "\(typed) \($0.typedName)") }
  }

  /// The completed script for one of the three shells.
  func mended(_ script: String) -> String { fish(bash(zsh(script))) }

  private func zsh(_ script: String) -> String {
    let cases = groups.map { "    '\($0.typed)') __\(program)_complete \($0.names) ;;\n" }.joined()
    return
      script
      .substituting("_left|right|facing", by: "_side")
      .substituting("_left|right", by: "_side")
      .substituting("'*:subcommands:'\n", by: "'*:subcommands:__\(program)_complete_help'\n")
      .substituting(
        "\n_\(program)_help() {\n    local -i ret",
        by: """

          __\(program)_complete_help() {
              case "${words[2,CURRENT-1]}" in
          \(cases)    esac
          }

          _\(program)_help() {
              local -i ret
          """)
  }

  private func bash(_ script: String) -> String {
    let cases = groups.map { "    '\($0.typed)') COMPREPLY+=($(compgen -W '\($0.names)' -- \"${cur}\")) ;;\n" }.joined()
    return script.substituting(
      "    __\(program)_offer_flags_options -1\n}\n\ncomplete",
      by: """
            __\(program)_offer_flags_options -1
            case "${COMP_WORDS[*]:2:COMP_CWORD - 2}" in
        \(cases)    esac
        }

        complete
        """)
  }

  private func fish(_ script: String) -> String {
    let first =
      "complete -c '\(program)' -n '__\(program)_should_offer_completions_for_flags_or_options \"\(program) help\""
    let lines = groups.map { group in
      let typed = group.typed.isEmpty ? "\(program) help" : "\(program) help \(group.typed)"
      return "complete -c '\(program)' -n 'test \"$(string join \" \" -- (__\(program)_tokens -pc))\" = \"\(typed)\"'"
        + " -fa '\(group.names)'\n"
    }
    return script.substituting(first, by: lines.joined() + first)
  }
}
