import Domain
import Glibc
import StepController
import StepDaemon
import StepProtocol
import SystemIO
import Terminal

/// The technician's interface for leading a servo: by keys on a terminal, otherwise by lines.
final class ServoPanel: BringUpPanel {
  private static let help = """
    ← →   10 µs (↓ ↑ 100, - + 1)        space   stop, as any other key does
    c o   it stands closed, open        t       go from closed to open and back
    w     write the ends                q       quit
    """

  private let step: StepID
  private let console: Console
  private let progress: ProgressLine
  private let keyboard: Keyboard?
  /// The part of an incomplete line that was read.
  private var (read, lineNumber) = ([UInt8](), 0)
  private var writtenEnds: ServoPulses?
  private var readout: BringUp.Readout?

  init(_ streams: StandardStreams, _ step: StepID) {
    self.step = step
    console = Console(streams)
    progress = console.progress
    keyboard = progress.isShown ? Keyboard(streams.input) : nil
  }

  func begin() {
    guard !isScript else { return }
    console.note(
      "The servo of the \(step) step. The step will move: keep everybody off the step. Control-C releases the servo.\n")
    console.note(Self.help + "\n")
  }

  var descriptor: Int32 { STDIN_FILENO }
  var isScript: Bool { keyboard == nil }

  func typed() throws -> [BringUpLoop.Typed]? {
    if let keyboard { return keyboard.pressed().map { Self.meaning(of: $0) } }
    var chunk = [UInt8](repeating: 0, count: 4096)
    let count = try check("read", "standard input") { Glibc.read(STDIN_FILENO, &chunk, chunk.count) }
    guard count > 0 else {
      if read.isEmpty { return nil }
      throw LineError(lineNumber + 1, "it has no end")
    }
    read += chunk[..<count]
    var typed: [BringUpLoop.Typed] = []
    while let end = read.firstIndex(of: 0x0A) {
      lineNumber += 1
      let line = String(decoding: read[..<end], as: UTF8.self)
      read.removeSubrange(...end)
      if let meaning = try Self.meaning(of: line, lineNumber) { typed.append(meaning) }
    }
    if read.count > 100 { throw LineError(lineNumber + 1, "it is longer than any order") }
    return typed
  }

  func show(_ readout: BringUp.Readout) {
    writtenEnds = writtenEnds ?? readout.ends
    guard readout != self.readout else { return }
    self.readout = readout
    draw()
  }

  private func draw() {
    guard !isScript, let readout else { return }
    let pulse = readout.pulse.map { "\($0) µs" } ?? "somewhere"
    let target = readout.target.map { " → \($0)" } ?? ""
    let inputs = readout.inputs.map { input in
      // Each input belongs to this step or to the vehicle.
      let name = "\(input.sensor)".split(separator: ".").last ?? ""
      return " \(name):\(input.isActive.map { $0 ? "1" : "0" } ?? "?")"
    }
    progress.show("\(pulse)\(target)   closed \(readout.ends.closed) open \(readout.ends.open)  \(inputs.joined())")
  }

  func show(_ message: BringUp.Message) {
    switch message {
    case .ready(nil):
      say("nobody knows where the servo is: \(isScript ? "find" : "Enter") turns it to its middle, in 20 s")
    case .ready(let pulse?): say("held at \(pulse) µs")
    case .arrived(let pulse): if isScript { say("at \(pulse) µs") }
    case .stopped(let pulse): say("stopped\(Self.place(pulse))")
    case .held(let pulse, let reason): say("held\(Self.place(pulse)): \(reason)")
    case .refused(let reason): say(reason)
    case .marked(let end, let pulse): say("\(end == .open ? "open" : "closed") is \(pulse) µs")
    case .reached(let end, let seen):
      let name = end == .open ? "open" : "closed"
      say("\(name) end: " + (seen.map { "its switch sees the step from \($0) µs on" } ?? "reached; it has no switch"))
    case .missed(let end): say("\(end == .open ? "open" : "closed") end: its switch does not see the step")
    case .passed: say("the test has passed")
    case .released:
      say("the servo is released")
      if let ends = readout?.ends, ends != writtenEnds {
        say("not written: closed_us = \(ends.closed), open_us = \(ends.open)")
      }
    // The error reports this.
    case .driven: break
    }
  }

  func showWritten(_ pulses: ServoPulses, to path: String) {
    writtenEnds = pulses
    say("wrote closed_us = \(pulses.closed), open_us = \(pulses.open) to \(path)")
  }

  func close() { if !isScript { progress.clear() } }

  private func say(_ text: String) {
    if isScript {
      // A reader that has gone must not affect the servo.
      try? console.result("\(step): \(text)")
    } else {
      progress.clear()
      console.note(text)
      draw()
    }
  }

  private static func place(_ pulse: Int?) -> String { pulse.map { " at \($0) µs" } ?? "" }

  // MARK: - Keys

  private static func meaning(of keys: [Character]) -> [BringUpLoop.Typed] {
    var typed: [BringUpLoop.Typed] = []
    var rest = keys[...]
    while let key = rest.popFirst() {
      var key = key
      // Arrows (ECMA-48, 8.3.22 and its neighbours; SS3 in application mode).
      if key == "\u{1B}", let second = rest.first, second == "[" || second == "O" {
        rest = rest.dropFirst()
        switch rest.popFirst() {
        case "A": key = "\u{2191}"
        case "B": key = "\u{2193}"
        case "C": key = "\u{2192}"
        case "D": key = "\u{2190}"
        default: break
        }
      }
      typed.append(meaning(of: key))
    }
    return typed
  }

  private static func meaning(of key: Character) -> BringUpLoop.Typed {
    switch key {
    case "\u{2190}": .order(.jog(by: -10))
    case "\u{2192}": .order(.jog(by: 10))
    case "\u{2193}": .order(.jog(by: -100))
    case "\u{2191}": .order(.jog(by: 100))
    case "-": .order(.jog(by: -1))
    case "+", "=": .order(.jog(by: 1))
    case "c": .order(.mark(.close))
    case "o": .order(.mark(.open))
    case "t": .order(.test)
    case "w": .write
    case "q": .quit
    case "\n", "\r": .order(.find)
    default: .order(.stop)
    }
  }

  // MARK: - Lines

  struct LineError: Failure {
    private let number: Int
    private let problem: String

    init(_ number: Int, _ problem: String) {
      self.number = number
      self.problem = problem
    }

    var exitStatus: ExitStatus { .badData }
    var hint: String? {
      "orders are find, a pulse as 1500, +N, -N, closed, open, test, stop, write and quit, a line each"
    }
    var description: String { "line \(number) of standard input: \(problem)" }
  }

  /// - Returns: nil for a line without an order.
  private static func meaning(of line: String, _ number: Int) throws(LineError) -> BringUpLoop.Typed? {
    let word = line.prefix { $0 != "#" }.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    switch word {
    case "": return nil
    case "find": return .order(.find)
    case "closed": return .order(.mark(.close))
    case "open": return .order(.mark(.open))
    case "test": return .order(.test)
    case "stop": return .order(.stop)
    case "write": return .write
    case "quit": return .quit
    default:
      let digits = word.drop { "+-".contains($0) }
      guard word.count - digits.count < 2, (1...4).contains(digits.count), digits.allSatisfy({ ("0"..."9") ~= $0 }),
        let value = Int(digits)
      else { throw LineError(number, "expected an order, found \"\(word.prefix(40))\"") }
      if word.hasPrefix("+") { return .order(.move(by: value)) }
      return .order(word.hasPrefix("-") ? .move(by: -value) : .go(to: value))
    }
  }
}
