import Bluetooth
import Terminal

/// What a command that keeps going draws on a terminal, one frame over the other.
final class LiveView {
  private let context: Context
  private let console: Console
  let glyphs: Glyphs
  private var screen: Screen?
  /// What stays on the terminal.
  private var last: [String] = []
  private var notes: [String] = []

  /// - Returns: nil where lines or JSON are to be printed instead.
  init?(_ context: Context, _ console: Console, radio: RadioSpec?) {
    // Of a replay only the last frame would be seen.
    guard !console.isJSON, radio?.isReplay != true, Screen.canDraw(context) else { return nil }
    self.context = context
    self.console = console
    glyphs = Glyphs.isUnicode(context.environment) ? .unicode : .ascii
  }

  /// Takes the terminal, and its keys where there are some.
  ///
  /// - Returns: what is readable when a key was pressed.
  func takeKeys() -> Int32? {
    let screen = Screen(context, takesKeys: true)
    self.screen = screen
    return screen.keyboard
  }

  /// The keys that were pressed since the last time.
  var keys: [Character] { screen?.pressed() ?? [] }

  /// Says what is going on. A frame would hide it, so it is said when the terminal is given back.
  func note(_ line: String) {
    if screen == nil { console.note(line) } else { notes.append(line) }
  }

  /// Draws a frame.
  ///
  /// - Parameters:
  ///   - last: the lines that stay if this is the last frame; nil for those of the frame.
  ///   - lines: gives the frame for a size.
  func show(last: [String]? = nil, _ lines: (Screen.Size) -> [String]) throws {
    let screen = screen ?? Screen(context)
    self.screen = screen
    let frame = lines(screen.size)
    self.last = last ?? frame
    try screen.show(frame)
  }

  /// Gives the terminal back, and leaves the last frame's lines on it.
  func close() {
    guard screen != nil else { return }
    screen = nil
    for line in last { try? console.result(line) }
    notes.forEach(console.note)
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
