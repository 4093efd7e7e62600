import Domain
import Encoding
import Terminal

/// The characters of a view. Each is one column wide.
package struct Glyphs: Sendable {
  /// Whether names may contain non-ASCII characters.
  package let isUnicode: Bool
  /// The vehicle's outline, with its front at the top.
  package let body: Box
  /// A step that the rider does not face, one that the rider faces, and one at which the rider is located.
  package let step: Character
  package let facedStep: Character
  package let locatedStep: Character
  /// The way to a step, the zones' edges on it, and the part where the rider may be.
  package let way: Character
  package let edge: Character
  package let interval: Character
  /// The rider who faces a step, and the rider who is located.
  package let leaning: Character
  package let decided: Character
  /// The figure around the rider's mark, smallest first.
  package let riders: [Size]
  package let arrow: String
  package let ellipsis: String
  /// The bars of a history, from the weakest signal to the strongest.
  package let levels: [Character]

  package struct Box: Sendable {
    package let topLeft, topRight, bottomLeft, bottomRight, horizontal, vertical: Character
  }

  /// A figure's rows. The mark replaces the `*`; a space is transparent.
  package typealias Size = [String]

  package static let unicode = Glyphs(
    isUnicode: true,
    body: Box(
      topLeft: "╭", topRight: "╮", bottomLeft: "└", bottomRight: "┘", horizontal: "─", vertical: "│"),
    step: "░", facedStep: "▒", locatedStep: "█", way: "┄", edge: "┼", interval: "━", leaning: "○", decided: "●",
    riders: [
      ["*"],
      ["(*)"],
      ["╭───╮", "│ * │", "╰───╯"],
      [" ╭─────╮ ", "╭╯     ╰╮", "│   *   │", "╰╮     ╭╯", " ╰─────╯ "],
    ],
    arrow: "→", ellipsis: "…", levels: Array("▁▂▃▄▅▆▇█"))

  package static let ascii = Glyphs(
    isUnicode: false,
    body: Box(topLeft: "/", topRight: "\\", bottomLeft: "+", bottomRight: "+", horizontal: "-", vertical: "|"),
    step: ":", facedStep: "%", locatedStep: "#", way: ".", edge: "+", interval: "=", leaning: "o", decided: "@",
    riders: [
      ["*"],
      ["(*)"],
      [".---.", "| * |", "'---'"],
      [" .-----. ", "/       \\", "|   *   |", "\\       /", " '-----' "],
    ],
    arrow: ">", ellipsis: "...", levels: Array("_.:-=+*#"))

  /// Whether a terminal takes UTF-8: the first of these that is set decides (POSIX.1-2017, 8.2).
  package static func isUnicode(_ environment: [String: String]) -> Bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
    let codeset = locale.split(separator: ".", maxSplits: 1).dropFirst().first?.prefix { $0 != "@" } ?? ""
    return ["utf-8", "utf8"].contains(codeset.lowercased())
  }

  /// Foreign text, cut to the available columns.
  package func text(_ text: String, in room: Int) -> String {
    var text = printable(text)
    if !isUnicode {
      // Text of this program.
      text = text.substituting("±", by: "+/-").substituting("°", by: " degrees")
      text = String(text.map { $0.isASCII ? $0 : "?" })
    }
    return text.truncated(to: room, ellipsis: ellipsis)
  }
}
