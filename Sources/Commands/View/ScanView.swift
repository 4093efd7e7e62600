import Terminal

/// `scan` on a terminal: what is heard is drawn over what was heard before.
final class ScanView {
  private let console: Console
  private let glyphs: Glyphs
  private let radio: String
  private var screen: Screen?
  private var last: [String] = []

  /// - Parameter radio: what the user calls it.
  /// - Returns: nil where lines or JSON are to be printed instead.
  init?(_ console: Console, _ context: Context, radio: String) {
    guard !console.isJSON, let screen = Screen(context) else { return nil }
    self.console = console
    self.radio = radio
    self.screen = screen
    glyphs = Glyphs.isUnicode(context.environment) ? .unicode : .ascii
  }

  func show(_ table: inout ScanTable, at time: Double) throws {
    guard let screen else { return }
    let rows = table.rows(at: time)
    let frame = ScanFrame(
      table, rows: rows, at: time, radio: radio, size: screen.size, glyphs: glyphs, style: console.styled)
    last = frame.lines
    try screen.show(last)
  }

  /// Gives back the terminal, and leaves the last table on it.
  func close() {
    guard screen != nil else { return }
    screen = nil
    for line in last { try? console.result(line) }
  }
}
