import Foundation
import TestSupport

/// A page in mdoc(7), read as far as the tests compare it with the programs.
struct ManualPage {
  /// As in `stepctl-open.1`.
  let file: String
  private let lines: [Line]

  private struct Line {
    /// `EXIT STATUS`
    let section: String
    /// `[broker]`; empty before the first of a section.
    let subsection: String
    /// The words, of which the first is the macro (`It`), or nil for a line of text.
    let macro: [String]?
    let text: String
  }

  /// An entry of a list.
  struct Item {
    /// The words after `.It`.
    let tag: [String]
    /// What is said of it, without macros.
    let body: String

    /// The names behind each `Fl`.
    var flags: Set<String> { Set(zip(tag, tag.dropFirst()).filter { $0.0 == "Fl" }.map(\.1)) }

    /// What follows `Ar`: `seconds`, `file|name`. Dots that say that there may be several are not a part of it.
    var value: String? {
      tag.firstIndex(of: "Ar").map { tag[($0 + 1)...].filter { $0 != "..." }.joined() }
    }

    /// What follows `Default:`, to the end.
    var fallback: String? {
      body.range(of: "Default: ").map { String(body[$0.upperBound...]) }
    }
  }

  /// One way to call a command, from SYNOPSIS.
  struct Form {
    /// `stepctl provision vehicle`
    var command: String
    var optional: Set<String> = []
    var required: Set<String> = []
    var operands: [String] = []
  }

  init(_ file: String) throws {
    self.file = file
    var section = ""
    var subsection = ""
    var lines: [Line] = []
    for line in try Repository.text("man/\(file)").split(separator: "\n", omittingEmptySubsequences: false) {
      let isMacro = line.hasPrefix(".")
      let words = line.dropFirst().split(separator: " ").map { word in
        String(word).replacing("\\&", with: "").replacing("\"", with: "")
      }
      if isMacro, words.first == "Sh" {
        section = words.dropFirst().joined(separator: " ")
        subsection = ""
      } else if isMacro, words.first == "Ss" {
        subsection = words.dropFirst().joined(separator: " ")
      }
      lines.append(
        Line(section: section, subsection: subsection, macro: isMacro ? words : nil, text: String(line)))
    }
    self.lines = lines
  }

  // MARK: - What it says

  /// The names under NAME.
  var names: [String] {
    lines.filter { $0.section == "NAME" && $0.macro?.first == "Nm" }.compactMap { $0.macro?.dropFirst().first }
  }

  /// The title and the section of `.Dt`.
  var title: [String] { lines.compactMap(\.macro).first { $0.first == "Dt" }.map { Array($0.dropFirst()) } ?? [] }

  var sections: Set<String> { Set(lines.map(\.section)) }

  func subsections(of section: String) -> Set<String> {
    Set(lines.filter { $0.section == section && !$0.subsection.isEmpty }.map(\.subsection))
  }

  /// The pages that it refers to, as `mosquitto.8`.
  var references: [String] {
    lines.compactMap(\.macro).flatMap { words in
      words.indices.filter { words[$0] == "Xr" && $0 + 2 < words.count }.map { "\(words[$0 + 1]).\(words[$0 + 2])" }
    }
  }

  /// The entries of all lists in a part of the page.
  ///
  /// - Parameter subsection: nil for all of the section, empty for what comes before its first subsection.
  func items(_ section: String, _ subsection: String? = nil) -> [Item] {
    var items: [(tag: [String], body: [String])] = []
    var isOpen = false
    for line in lines where line.section == section && (subsection ?? line.subsection) == line.subsection {
      switch line.macro?.first {
      case "It":
        items.append((Array(line.macro!.dropFirst()), []))
        isOpen = true
      case "El", "Bl", "Ss", "Bd": isOpen = false
      default:
        if isOpen { items[items.count - 1].body.append(Self.plain(line)) }
      }
    }
    return items.map { Item(tag: $0.tag, body: $0.body.joined(separator: " ")) }
  }

  /// The words behind each `Cm` in a part of the page, in the tags of its lists and elsewhere.
  func literals(_ section: String, _ subsection: String) -> (tags: Set<String>, all: Set<String>) {
    func words(_ words: [String]) -> Set<String> {
      guard let start = words.firstIndex(of: "Cm") else { return [] }
      return Set(words[(start + 1)...].filter { $0.wholeMatch(of: /[a-z][a-z0-9_]*/) != nil })
    }
    let elsewhere = lines.filter { $0.section == section && $0.subsection == subsection }.compactMap(\.macro)
    return (
      items(section, subsection).reduce(into: []) { $0.formUnion(words($1.tag)) },
      elsewhere.reduce(into: []) { $0.formUnion(words($1)) }
    )
  }

  /// Options and operands of the commands that the page is about.
  var arguments: [Item] { items("DESCRIPTION").filter { $0.tag.first == "Fl" || $0.tag.first == "Ar" } }

  var exitStatuses: [String] { items("EXIT STATUS").compactMap(\.tag.first) }

  var forms: [Form] {
    var forms: [Form] = []
    for line in lines where line.section == "SYNOPSIS" {
      guard let words = line.macro else { continue }
      if words[0] == "Nm" {
        forms.append(Form(command: words.dropFirst().filter { $0 != "Cm" }.joined(separator: " ")))
      }
      guard !forms.isEmpty else { continue }
      let flags = Item(tag: words, body: "").flags
      switch words[0] {
      case "Op" where words.dropFirst().first == "Ar":
        forms[forms.count - 1].operands.append(words.dropFirst(2).filter { $0 != "..." }.joined())
      case "Op": forms[forms.count - 1].optional.formUnion(flags)
      case "Fl": forms[forms.count - 1].required.formUnion(flags)
      case "Ar": forms[forms.count - 1].operands.append(words.dropFirst().filter { $0 != "..." }.joined())
      default: break
      }
    }
    return forms
  }

  /// The examples, as they are to be typed: those with `[section]`s or `key = value` in them.
  var examples: [String] {
    var examples: [[String]] = []
    var isOpen = false
    for line in lines where line.section == "EXAMPLES" {
      switch line.macro?.first {
      case "Bd":
        examples.append([])
        isOpen = true
      case "Ed": isOpen = false
      default:
        if isOpen { examples[examples.count - 1].append(line.text.replacing("\\e", with: "\\")) }
      }
    }
    return examples.map { $0.joined(separator: "\n") + "\n" }
  }

  private static func plain(_ line: Line) -> String {
    guard let words = line.macro else { return line.text }
    let macros: Set<String> = [
      "Ar", "Cm", "Ev", "Fl", "Li", "No", "Ns", "Pa", "Pp", "Pq", "Ql", "Sx", "Xr", "Dv", "Em", "Nm",
    ]
    return words.filter { !macros.contains($0) }.joined(separator: " ")
  }
}
