package import ArgumentParser
import Domain
import Encoding

/// The typed words, including the command, and the mistakes in them.
///
/// ArgumentParser finds mistakes too, but two of its answers mislead. For a mistyped option it reports the first
/// missing argument. For a repeated option it silently takes the last value.
package struct CommandTyped {
  package let root: any ParsableCommand.Type
  /// Options that stood before the command are moved behind it.
  private(set) var arguments: [String]
  /// The words after the program's name that lead to the command: its groups, and its own name.
  private var path: [String] = []
  private var command: any ParsableCommand.Type
  /// The number of arguments that name the command.
  private var words = 0

  /// The options of every command, which may stand before it, and whether each takes a value.
  private static let anywhere = [
    "--json": false, "--quiet": false, "-q": false, "--verbose": false, "-v": false, "-vv": false, "--no-color": false,
    "--vehicle": true, "--radio": true, "--nfc": true, "--timeout": true,
  ]

  /// Whether an option of every command takes a value; nil for another option. `-qv` is two of them.
  private static func takesValueAnywhere(_ name: String) -> Bool? {
    if let known = anywhere[name] { return known }
    return name.utf8.count > 2 && name.first == "-" && name.dropFirst().allSatisfy { "qv".contains($0) } ? false : nil
  }

  /// The first word that names a command: it stands behind options of every command, and behind `help` and its `--all`.
  package static func commandName(in words: ArraySlice<String>) -> String? {
    var rest = words
    while let word = rest.popFirst() {
      if word == "help" || word == "--all" { continue }
      guard word.hasPrefix("-") else { return word }
      let name = String(word.prefix { $0 != "=" })
      guard let takesValue = takesValueAnywhere(name) else { return nil }
      if takesValue, name == word { _ = rest.popFirst() }
    }
    return nil
  }

  package init(_ root: any ParsableCommand.Type, _ arguments: [String]) {
    self.root = root
    self.arguments = arguments
    command = root
  }

  /// The command with its groups: `stepctl provision tag`
  var typed: String { ([root.typedName] + path).joined(separator: " ") }

  /// Whether JSON is requested, even if the command line is invalid.
  var wantsJSON: Bool { arguments.prefix { $0 != "--" }.contains("--json") }

  /// Whether help shows everything.
  var showsAll: Bool { arguments.contains("--help-hidden") }

  /// Whether there is no command, only options of every command.
  private(set) var isBare = false

  // MARK: - The command

  /// Finds the typed command. If the command is mistyped, ArgumentParser blames the option after it.
  mutating func findCommand() throws(CommandFailure) {
    isBare = arguments.isEmpty
    let leading = takeLeadingOptions()
    askForAll()
    defer { arguments.insert(contentsOf: leading, at: words) }
    try follow(arguments[...])
  }

  /// The options before the command. They stay in place if there is no command, or an unknown word before it.
  private mutating func takeLeadingOptions() -> [String] {
    guard let first = arguments.first, first.hasPrefix("-"), !root.configuration.subcommands.isEmpty else { return [] }
    var count = 0
    while count < arguments.count, arguments[count].hasPrefix("-") {
      let name = String(arguments[count].prefix { $0 != "=" })
      guard let takesValue = Self.takesValueAnywhere(name) else { return [] }
      count += takesValue && name == arguments[count] ? 2 : 1
    }
    guard count < arguments.count else {
      isBare = true
      return []
    }
    let leading = Array(arguments[..<count])
    arguments.removeFirst(count)
    return leading
  }

  /// Makes `help open --all` and `open --help --all` what ArgumentParser calls `open --help-hidden`.
  private mutating func askForAll() {
    guard arguments.contains("--all"), arguments[0] == "help" || arguments.contains(where: ["--help", "-h"].contains)
    else { return }
    if arguments[0] == "help" { arguments.removeFirst() }
    arguments.removeAll { ["--all", "--help", "-h"].contains($0) }
    arguments.append("--help-hidden")
  }

  private mutating func follow(_ rest: ArraySlice<String>) throws(CommandFailure) {
    var isHelp = false
    for word in rest {
      let known = command.configuration.subcommands
      if word == "help", words == 0, !known.isEmpty {
        isHelp = true
        continue
      }
      guard !word.hasPrefix("-"), isHelp || !known.isEmpty else { return }
      // A script's unset variable.
      guard !word.isEmpty else {
        throw CommandFailure(.usage, "the command is empty", hint: "`\(typed) --help` lists the commands")
      }
      guard let next = known.first(where: { $0.typedName == word }) else {
        let groups = known.filter { group in group.configuration.subcommands.contains { $0.typedName == word } }
        let near =
          groups.count == 1
          ? "\(groups[0].typedName) \(word)" : Spelling.nearest(to: word, among: known.map { $0.typedName })
        throw CommandFailure(
          .usage, "there is no command `\(typed) \(word)`",
          hint: near.map { "did you mean `\(typed) \($0)`?" }
            ?? "`\(typed) --help` \(known.isEmpty ? "explains how to use it" : "lists the commands")")
      }
      command = next
      path.append(word)
      if !isHelp { words += 1 }
    }
  }

  // MARK: - Options

  /// Whether a word that looks like an option is repeated. The word may be a value, or an option that may be repeated.
  var hasRepetition: Bool {
    // A shell's completion request repeats the typed words.
    if arguments.first == "---completion" { return false }
    // A short option may be repeated by its long name.
    if arguments.contains(where: { $0.utf8.count == 2 && $0.utf8.first == 0x2D && $0 != "--" }) { return true }
    for (index, word) in arguments.enumerated() where word.utf8.count > 2 && word.utf8.starts(with: "--".utf8) {
      let name = word.utf8.prefix { $0 != 0x3D }
      if arguments[..<index].contains(where: { $0.utf8.prefix { $0 != 0x3D }.elementsEqual(name) }) { return true }
    }
    return false
  }

  private static func name(of word: String) -> Substring { word.prefix { $0 != "=" } }

  /// A parameter of the command.
  private struct Parameter {
    /// Its names as typed; empty for a positional argument.
    var names: [String]
    var takesValue: Bool
    var isRepeating: Bool
    var title: String
    var values: [String]
    /// Whether its value may begin with a hyphen.
    var takesAnything: Bool
    /// Its help text.
    var abstract: String?

    init?(_ json: JSON) {
      guard let kind = json["kind"]?.string else { return nil }
      names = (json["names"]?.array ?? []).compactMap { name in
        name["name"]?.string.map { (name["kind"] == "long" ? "--" : "-") + $0 }
      }
      takesValue = kind != "flag"
      isRepeating = json["isRepeating"]?.bool ?? false
      let value = "<\(json["valueName"]?.string ?? "")>"
      title = names.last { $0.hasPrefix("--") }.map { "\($0) \(value)" } ?? value
      values = (json["allValues"]?.array ?? []).compactMap(\.string)
      takesAnything = json["parsingStrategy"] == "unconditional"
      abstract = json["abstract"]?.string
    }
  }

  private var parameters: [Parameter]? { Self.parameters(of: command) }

  private static func parameters(of command: any ParsableCommand.Type) -> [Parameter]? {
    let description = try? JSON(parsing: Array(command._dumpHelp().utf8), maximumDepth: 64)
    return description?["command"]?["arguments"]?.array?.compactMap(Parameter.init)
  }

  /// The help text of the parameter at the end of a message: `the value "0" is invalid for "--for <time>"`
  func explanation(of message: String) -> String? {
    parameters?.first { message.hasSuffix(" is invalid for \"\($0.title)\"") }?.abstract
  }

  private static let ofEvery = ["--help", "-h", "--version", "--help-hidden"]

  /// The probable mistake: an option, a value of a fixed set, or a repeated option.
  func mistake() -> CommandFailure? {
    guard !isBare, let all = parameters else { return nil }
    var positional = all.filter(\.names.isEmpty)[...]
    let naming = all.contains { $0.names.contains("--vehicle") } ? "name a vehicle with --vehicle" : nil
    var seen: Set<String> = []
    var rest = arguments.dropFirst(words)
    while let word = rest.popFirst(), word != "--" {
      guard word.hasPrefix("-"), word.utf8.count > 1 else {
        if let place = positional.first {
          if let wrong = Self.wrong(word, for: place, or: naming) { return wrong }
          if !place.isRepeating { positional.removeFirst() }
        } else if let naming, let fixed = all.first(where: { $0.names.isEmpty && !$0.values.isEmpty }),
          !fixed.values.contains(word)
        {
          return CommandFailure(.usage, "unexpected argument \"\(word)\"", hint: naming)
        }
        continue
      }
      let name = String(Self.name(of: word))
      // These words may stand before a command, so the mistake is behind them.
      if isGroup, words == 0, let takesValue = Self.takesValueAnywhere(name) {
        if takesValue, name == word { _ = rest.popFirst() }
        continue
      }
      guard let option = all.first(where: { $0.names.contains(name) }) else {
        // Combined short flags, numbers, and options of every command.
        let isKnown =
          Self.ofEvery.contains(name) || Double(name) != nil || name.hasPrefix("--generate-completion-script")
          || !name.hasPrefix("--")
            && name.dropFirst().allSatisfy { letter in
              all.contains { $0.names.contains("-\(letter)") }
            }
        if isKnown { continue }
        return unknown(name, among: all.flatMap(\.names) + Self.ofEvery, before: rest)
      }
      guard option.takesValue else { continue }
      if !option.isRepeating, !seen.insert(option.title).inserted {
        return CommandFailure(.usage, "\(name) is given twice", hint: "give it once")
      }
      var value: String?
      if name == word {
        if let next = rest.first, option.takesAnything || !next.hasPrefix("-") || next == "-" || Double(next) != nil {
          value = rest.popFirst()
        }
      } else {
        value = String(word.dropFirst(name.count + 1))
      }
      if let value, let wrong = Self.wrong(value, for: option) { return wrong }
      // ArgumentParser takes a negative number for an option, and then reports a missing value.
      if name == word, !option.takesAnything, let value, value.hasPrefix("-"), value != "-" {
        return CommandFailure(
          .usage, "the value \"\(value)\" is invalid for \"\(option.title)\"",
          hint: option.abstract.map { $0[...].asClause })
      }
    }
    return nil
  }

  private var isGroup: Bool { !command.configuration.subcommands.isEmpty }

  private func unknown(_ name: String, among names: [String], before rest: ArraySlice<String>) -> CommandFailure {
    let isBeforeCommands = isGroup && words == 0
    // A side is a rider's word for a step, and a step's id a technician's.
    let same = ["--side": ["--step", "--steps"], "--step": ["--side", "--steps"], "--steps": ["--step", "--side"]]
    let near =
      (same[name] ?? []).first(where: names.contains)
      ?? Spelling.nearest(to: name, among: names + (isBeforeCommands ? Self.anywhere.keys.sorted() : []))
    var hint = near.map { "did you mean \"\($0)\"?" }
    if name == "--vehicle", let place = parameters?.first(where: \.names.isEmpty) {
      hint = "name the vehicle without an option: \(typed) \(place.title)"
    }
    let commands = command.configuration.subcommands
    if hint == nil, let index = rest.firstIndex(where: { word in commands.contains { $0.typedName == word } }),
      let later = commands.first(where: { $0.typedName == rest[index] })
    {
      let known = Self.parameters(of: later)?.flatMap(\.names) ?? []
      if let option = known.contains(name) ? name : Spelling.nearest(to: name, among: known) {
        let words = [typed, rest[index], option] + rest[..<index]
        hint = "the options of a command come after it: \(words.joined(separator: " "))"
      } else {
        hint = "`\(typed) \(rest[index]) --help` explains how to use it"
      }
    }
    return CommandFailure(
      .usage, "unknown option \"\(name)\"", hint: hint ?? "`\(typed) --help` explains how to use it")
  }

  /// - Parameter other: what else the value may have meant.
  private static func wrong(_ value: String, for parameter: Parameter, or other: String? = nil) -> CommandFailure? {
    guard let last = parameter.values.last, !parameter.values.contains(value) else { return nil }
    let others = parameter.values.dropLast().map { "\"\($0)\"" }.joined(separator: ", ")
    let list = others.isEmpty ? "\"\(last)\"" : "\(others) or \"\(last)\""
    let near = Spelling.nearest(to: value, among: parameter.values)
    let hint =
      near.map { "did you mean \"\($0)\"?" } ?? (["use \(list)"] + [other].compactMap { $0 }).joined(separator: "; ")
    return CommandFailure(.usage, "the value \"\(value)\" is invalid for \"\(parameter.title)\"", hint: hint)
  }

  // MARK: - What it says of itself

  /// Whether this is the help of the program itself.
  func isOverview(_ text: String) -> Bool { path.isEmpty && text.hasPrefix("OVERVIEW: ") }

  /// ArgumentParser's help, with the parts that it does not know: examples, the manual, and the build.
  func completed(_ text: String, _ about: ProgramText) -> String {
    if text == Program.version {
      return ([text] + about.build).joined(separator: "\n")
    }
    if !root.configuration.subcommands.isEmpty, text.hasPrefix("#") || text.hasPrefix("function ") {
      return CompletionScript(of: root).mended(text)
    }
    guard text.hasPrefix("OVERVIEW: ") || text.hasPrefix("USAGE: ") else { return text }
    var lines = [text]
    while lines[0].hasSuffix("\n") { lines[0].removeLast() }
    // The program's help is about all options.
    let hasMore = path.isEmpty ? about.brief != nil : parameters?.contains { $0.names.contains("--radio") } ?? false
    if hasMore, showsAll { lines += Self.section("RADIOS", about.radios) }
    lines += Self.section("EXAMPLES", about.examples(typed))
    lines.append("")
    if hasMore, !showsAll {
      lines.append("MORE, FOR TECHNICIANS: \(([root.typedName, "help"] + path).joined(separator: " ")) --all")
    }
    let page = about.manual ?? typed.split(separator: " ").joined(separator: "-")
    lines.append("MANUAL: man \(page)")
    if path.isEmpty {
      lines.append("BUGS: the issues of its repository; how to report a weakness: SECURITY.md")
    }
    return lines.joined(separator: "\n")
  }

  /// A part of a help text, below an empty line.
  private static func section(_ title: String, _ entries: [(typed: String, does: String)]) -> [String] {
    if entries.isEmpty { return [] }
    // Beyond ArgumentParser's own columns. A longer entry gets its own line.
    let column = 34
    return ["", "\(title):"]
      + entries.flatMap { entry in
        let typed = "  \(entry.typed)"
        return typed.count + 2 <= column && column + entry.does.count <= 80
          ? [typed.aligned(to: column) + entry.does] : [typed, "      \(entry.does)"]
      }
  }
}
