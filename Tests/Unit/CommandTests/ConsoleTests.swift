import Bluetooth
import Domain
import Rider
import SystemIO
import Terminal
import Testing

@testable import CommandParts
@testable import RiderCommands
@testable import UserSettings

@Suite("Console, questions and views")
struct ConsoleTests {
  private let output = Record(size: nil, fault: nil)
  private let errors = Record(size: nil, fault: nil)

  private func context(answers: [String]? = nil, terminal: Record? = nil, _ environment: [String: String] = [:])
    -> Context
  {
    Context(
      streams: StandardStreams(
        output: terminal ?? output, errors: errors, input: Answers(answers), environment: environment),
      folders: ConfigurationFolders(environment: environment),
      interruption: { () throws(SystemError) in try Interruption.manual() })
  }

  @Test("who is located at a step that was not asked for is located, and who is not is not")
  func located() throws {
    func sentence(_ decision: LocationReport) -> String {
      Guide(decision.vehicle, limit: nil, Console(context()), hasLines: true)
        .sentence(on: .beacon, .success(.undecided(decision.location, .hci(0))))
    }
    let left = try report(facing: .left, isLocated: true, reading(.left, 1, .near), reading(.right))
    #expect(sentence(left) == "by radio: at the left step")
    let nowhere = try report(reading(.left), reading(.right))
    #expect(sentence(nowhere).hasPrefix("not located by radio: "))
  }

  @Test("results and notes go to different places, and -q and -v say which notes")
  func places() throws {
    for (isQuiet, verbosity) in [(false, 0), (true, 0), (false, 1)] {
      let console = Console(context(), isQuiet: isQuiet, verbosity: verbosity)
      try console.result("result")
      console.note("note")
      console.detail("de\u{1B}tail")
      console.progress.show("nobody sees this where there is no terminal")
    }
    #expect(output.text == "result\nresult\nresult\n")
    #expect(errors.text == "note\nnote\nde\u{FFFD}tail\n")
  }

  @Test("a question is repeated until the answer is yes or no")
  func confirmation() throws {
    let context = context(answers: ["perhaps", " YES ", "", "n"])
    let questions = Questions(context.streams, try context.interruption())
    #expect(try questions.confirm("open?", suggestion: false))
    #expect(try !questions.confirm("open?", suggestion: false))
    #expect(try !questions.confirm("open?", suggestion: true))
    #expect(errors.text == "open? [y/N] open? [y/N] open? [y/N] open? [Y/n] ")
  }

  @Test("a signal ends a question, and so does the end of the input")
  func ends() throws {
    let context = context(answers: [])
    let interruption = try context.interruption()
    #expect(throws: CommandFailure.self) { try Questions(context.streams, interruption).ask("name? ") }
    interruption.interrupt()
    #expect(throws: Interrupted.self) { try Questions(context.streams, interruption).ask("name? ") }
  }

  @Test("an offer is accepted with a line, and after the end of the input it is only waited")
  func offers() throws {
    let context = context(answers: ["  anna@example.org "])
    let interruption = try context.interruption()
    let questions = Questions(context.streams, interruption)
    questions.offer("address? ")
    #expect(try questions.accepted(before: .now + .seconds(60)) == "anna@example.org")
    let began = Instant.now
    #expect(try questions.accepted(before: began + .milliseconds(30)) == nil)
    #expect(began.duration(to: .now) >= .milliseconds(30))
    questions.withdraw()
    #expect(errors.text == "address? \n")
    interruption.interrupt()
    #expect(throws: Interrupted.self) { try questions.accepted(before: .now + .seconds(60)) }
  }

  @Test("a view draws over the last frame, keeps notes for later, and leaves the last lines")
  func view() throws {
    let terminal = Record(size: Screen.Size(rows: 5, columns: 40), fault: nil)
    let context = context(terminal: terminal, ["TERM": "xterm"])
    let console = Console(context)
    let view = try #require(LiveView(context, console))
    view.note("before")
    #expect(errors.text == "before\n")
    try view.show { size in ["\(size.rows) rows", "two"] }
    view.note("meanwhile")
    try view.show(last: ["the end"]) { _ in ["three"] }
    #expect(errors.text == "before\n")
    view.close()
    #expect(errors.text == "before\nmeanwhile\n")
    let enter = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l"
    let leave = "\r\n\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"
    let frames = "\u{1B}[H5 rows\u{1B}[K\r\ntwo\u{1B}[K\u{1B}[J\u{1B}[Hthree\u{1B}[K\u{1B}[J"
    #expect(terminal.text == "\(enter)\(frames)\(leave)the end\n")
    view.close()
    #expect(terminal.text.hasSuffix("the end\n"))
  }

  @Test("there is no view where lines are wanted")
  func noView() {
    let terminal = Record(size: Screen.Size(rows: 5, columns: 40), fault: nil)
    let able = context(terminal: terminal, ["TERM": "xterm"])
    #expect(LiveView(context(["TERM": "xterm"]), Console(able)) == nil)
    #expect(LiveView(context(terminal: terminal, ["TERM": "dumb"]), Console(able)) == nil)
    #expect(LiveView(able, Console(able, isJSON: true)) == nil)
    #expect(terminal.text == "")
  }
}
