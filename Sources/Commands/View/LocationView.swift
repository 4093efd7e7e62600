import Bluetooth
import Terminal

/// `locate --watch` on a terminal: each decision is drawn over the last.
final class LocationView {
  private let console: Console
  private let glyphs: Glyphs
  private var screen: Screen?
  private var last: LocationReport?

  /// - Returns: nil where lines or JSON are to be printed instead.
  init?(_ console: Console, _ context: Context) {
    guard !console.isJSON, let screen = Screen(context) else { return nil }
    self.console = console
    self.screen = screen
    glyphs = Glyphs.isUnicode(context.environment) ? .unicode : .ascii
  }

  func show(_ report: LocationReport) throws {
    last = report
    guard let screen else { return }
    try screen.show(LocationFrame(report, size: screen.size, glyphs: glyphs, style: console.styled).lines)
  }

  /// Gives back the terminal, and leaves the last decision on it.
  func close() {
    screen = nil
    if let last { try? console.result(last.line) }
    last = nil
  }
}

extension RadioSpec {
  var isCapture: Bool { if case .btsnoop = self { true } else { false } }

  /// Whether it is over in a moment: a recording is replayed as fast as it can be read, except at the end of a pipe
  /// into which somebody still records.
  var isReplay: Bool {
    if case .btsnoop(let path) = self { path != "-" } else { false }
  }
}
