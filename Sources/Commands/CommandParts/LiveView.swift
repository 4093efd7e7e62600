package import Terminal

/// Draws the frames of a running command on a terminal, each over the last one.
package final class LiveView {
  private let context: Context
  private let console: Console
  package let glyphs: Glyphs
  private var screen: Screen?
  /// The lines that stay on the terminal afterwards.
  private var last: [String] = []
  private var notes: [String] = []

  /// - Returns: nil if lines or JSON should be printed instead.
  package init?(_ context: Context, _ console: Console) {
    guard !console.isJSON, Screen.canDraw(context.streams) else { return nil }
    self.context = context
    self.console = console
    glyphs = Glyphs.isUnicode(context.environment) ? .unicode : .ascii
  }

  /// Takes over the terminal, and its keys if there are any.
  ///
  /// - Returns: the descriptor that is readable when a key was pressed.
  package func takeKeys() -> Int32? {
    let screen = Screen(context.streams, takesKeys: true)
    self.screen = screen
    return screen.keyboard
  }

  /// Whether the user can press keys.
  package var hasKeys: Bool { screen?.keyboard != nil }

  /// The keys pressed since the last call.
  package var keys: [Character] { screen?.pressed() ?? [] }

  /// Keeps a progress message until the terminal is given back, because a frame would hide it.
  package func note(_ line: String) {
    if screen == nil { console.note(line) } else { notes.append(line) }
  }

  /// Draws a frame.
  ///
  /// - Parameters:
  ///   - last: the lines that stay if this is the last frame; nil for the frame's own lines.
  ///   - lines: makes the frame for a size.
  package func show(last: [String]? = nil, _ lines: (Screen.Size) -> [String]) throws {
    let screen = screen ?? Screen(context.streams)
    self.screen = screen
    let frame = lines(screen.size)
    self.last = last ?? frame
    try screen.show(frame)
  }

  /// Gives the terminal back, and prints the last frame's lines on it.
  package func close() {
    guard screen != nil else { return }
    screen = nil
    for line in last { try? console.result(line) }
    notes.forEach(console.note)
  }
}
