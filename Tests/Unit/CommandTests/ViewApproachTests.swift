import Domain
import StepProtocol
import Terminal
import Testing

@testable import CommandParts
@testable import RiderCommands

@Suite("Frame of locate --watch") struct ViewFrameTests {
  @Test("shows a rider who is located")
  func located() throws {
    let report = try report(
      facing: .left, isLocated: true, reading(.left, 0.9, .near, rssi: -58, packets: 49),
      reading(.right, 12.2, .far, rssi: -81, packets: 42, age: 0.3))
    #expect(
      frame(report, rows: 24, columns: 80).joined(separator: "\n") == """
         Rolling Chassis                                                         12.5 s

                                       ╭──── front ─────╮
                                       │                │
                                       │                │
                                       │                │
                                       │                │
                          you          │                │
                        ╭─────╮      ██│                │░░
                       ╭╯     ╰╮     ██│                │░░
         ┄┄┄┄┄┄┄┄┄┄┄┼┄━│━━━●━━━│━━┄┄┄██│ left     right │░░┄┄┄┄┄┼┄┄┄┄┄┄┄┄┄┄┼┄━━━━━━━━━━
                       ╰╮     ╭╯     ██│                │░░
                        ╰─────╯      ██│                │░░
            far    3 m near  0.5 m     │                │     0.5 m near  3 m    far
                                       │                │
                                       │                │
                                       │                │
                                       └────────────────┘

         * left  near        0.9 m (0.3 to 2.3 m)   -58 dBm  49 packets   0.1 s ago
           right far        12.2 m (4.7 to 31.7 m)  -81 dBm  42 packets   0.3 s ago

         ● decided: at the left step
         → ready: stepctl open --side left
        """)
  }

  @Test("shows with ASCII a rider who leans to a step")
  func leaning() throws {
    let report = try report(
      facing: .right, reading(.left, 14, .far, rssi: -82), reading(.right, 2.1, .near, rssi: -65))
    #expect(
      frame(report, rows: 24, columns: 80, .ascii).joined(separator: "\n") == #"""
         Rolling Chassis                                                         12.5 s

                                       /---- front -----\
                                       |                |
                                       |                |
                                       |                |
                                       |                |
                                       |                |
                                     ::|                |%%             you
                                     ::|                |%%            .---.
         =========..+..........+.....::| left     right |%%.....+..====|=o=|===........
                                     ::|                |%%            '---'
                                     ::|                |%%
            far    3 m near  0.5 m     |                |     0.5 m near  3 m    far
                                       |                |
                                       |                |
                                       |                |
                                       +----------------+

           left  far        14.0 m (5.4 to 36.4 m)  -82 dBm  40 packets   0.1 s ago
         ~ right near        2.1 m (0.8 to 5.5 m)   -65 dBm  40 packets   0.1 s ago

         o leaning: towards the right step
         > come closer on the right side
        """#)
  }

  @Test("shows on both sides a rider who could be at either")
  func undecided() throws {
    let report = try report(reading(.left, 2.4, .near, rssi: -66), reading(.right, 6, .far, rssi: -74))
    #expect(
      frame(report, rows: 18, columns: 72).joined(separator: "\n") == """
         Rolling Chassis                                                 12.5 s

                                     ╭── front ───╮
                                     │            │
                                     │            │
                                     │            │
                    you?           ░░│            │░░                 you?
         ┄┄┄┄┄┄━━━━━(?)━━━━┄┄┼┄┄┄┄┄░░│ left right │░░┄┄┄┄┄┼┄┄┄┄┄┄┄━━━━━?━━━━━━┄
                                   ░░│            │░░
            far   3 m      0.5 m     │            │     0.5 m      3 m   far
                                     │            │
                                     └────────────┘

           left  near        2.4 m (0.9 to 6.2 m)   40 packets   0.1 s ago
           right far         6.0 m (2.3 to 15.6 m)  40 packets   0.1 s ago

         ? cannot tell yet which step
         → come closer to one step
        """)
  }

  @Test("has the picture where there are 12 rows of 40")
  func small() throws {
    let report = try report(
      facing: .left, isLocated: true, reading(.left, 0.9, .near), reading(.right, 12.2, .far))
    #expect(
      frame(report, rows: 12, columns: 40).joined(separator: "\n") == """
         Rolling Chassis                 12.5 s
                     ╭── front ───╮
              you    │            │
             ╭───╮ ██│            │░░
         ┄┄┄┄│━●━│┄██│ left right │░░┄┄┼┄┄┼━━━━
             ╰───╯ ██│            │░░
            3 m      │            │      3 m
                     └────────────┘
         * left  near        0.9 m   0.1 s ago
           right far        12.2 m   0.1 s ago
         ● decided: at the left step
         → ready: stepctl open --side left
        """)
  }

  @Test("leaves out the picture where it has no room")
  func narrow() throws {
    let report = try report(at: 4, reading(.left), reading(.right))
    #expect(
      frame(report, rows: 24, columns: 36).joined(separator: "\n") == """
         Rolling Chassis              4.0 s

           left  -               -
           right -               -

         ? cannot tell yet which step
         → no beacon of Rolling C… is heard
        """)
  }

  @Test("leaves out all but the advice at last")
  func tiny() throws {
    let report = try report(facing: .left, reading(.left, 4, .far), reading(.right, 9, .far))
    #expect(
      frame(report, rows: 4, columns: 30) == [
        " ~ left  far         4.0 m",
        "   right far         9.0 m",
        " ○ leaning: towards the left…",
        " → come closer on the left s…",
      ])
    #expect(
      frame(report, rows: 3, columns: 40) == [
        " ○ leaning: towards the left step",
        " → come closer on the left side",
      ])
    #expect(frame(report, rows: 1, columns: 20) == [" → come closer on …"])
  }

  @Test("shows the keys below everything else, where there is room, and what becomes of a command in place of advice")
  func keys() throws {
    let report = try report(facing: .left, isLocated: true, reading(.left, 0.9, .near), reading(.right, 9, .far))
    let keys = " o open   c close   s stop   q quit"
    let lines = frame(report, news: "the left step is moving", keys: .init(), rows: 24, columns: 80)
    #expect(lines.count == 24)
    #expect(lines.suffix(2) == [" → the left step is moving", keys])
    #expect(frame(report, keys: .init(), rows: 5, columns: 40).last == " → ready: press o to open")
    #expect(frame(report, keys: .init(), rows: 6, columns: 40).last == keys)
  }

  @Test("the key is the prompt where there are keys: o to open, and c to close a step that is out")
  func prompt() throws {
    let report = try report(facing: .left, isLocated: true, reading(.left, 0.9, .near), reading(.right, 9, .far))
    func advice(_ state: StepState) throws -> String {
      frame(report, steps: try steps(state, .unknown), keys: .init(), rows: 24, columns: 80).suffix(2)[22]
    }
    #expect(frame(report, rows: 24, columns: 80).last == " → ready: stepctl open --side left")
    for state in [StepState.retracted, .held, .unknown] { #expect(try advice(state) == " → ready: press o to open") }
    #expect(try advice(.extended) == " → ready: press c to close")
  }

  @Test("leads to the side that the rider asked for, and keeps all keys where there are 15 rows of 40")
  func otherSide() throws {
    let report = try report(facing: .left, reading(.left, 4, .far), reading(.right, 9, .far))
    let keys = ApproachFrame.Keys(wish: "opens when you are there, 17 s left")
    #expect(
      frame(report, to: .right, keys: keys, rows: 15, columns: 40).joined(separator: "\n") == """
         Rolling Chassis                 12.5 s
                     ╭── front ───╮
                     │            │
                     │            │
           you     ▒▒│            │░░
         ┄━━○━━┄┼┄┄▒▒│ left right │░░┄┄┼┄┄┼━━━━
                   ▒▒│            │░░
            3 m      │            │      3 m
                     └────────────┘
         ~ left  far         4.0 m   0.1 s ago
           right far         9.0 m   0.1 s ago
         ○ leaning: towards the left step
         → go to the right side
         opens when you are there, 17 s left
         o open   c close   s stop   q quit
        """)
    #expect(
      frame(report, to: .right, keys: keys, rows: 24, columns: 80).last
        == " o open   c close   s stop   q quit   opens when you are there, 17 s left")
  }

  @Test("draws a step as far out as it is, and says it in a word")
  func stepsAsTheyAre() throws {
    let report = try report(facing: .left, isLocated: true, reading(.left, 0.9, .near), reading(.right, 12.2, .far))
    #expect(
      frame(report, steps: try steps(.extended, .unknown), keys: .init(), rows: 15, columns: 40)
        .joined(separator: "\n") == """
           Rolling Chassis                 12.5 s
                       ╭── front ───╮
                       │            │
               you     │            │
              ╭───╮████│            │░░
           ┄┄┄│━●━│████│ left right │░?┄┄┼┄┄┼━━━━
              ╰───╯████│            │░░
              3 m      │            │      3 m
                       │            │
                       └────────────┘
           * left  out     near        0.9 m
             right unknown far        12.2 m
           ● decided: at the left step
           → ready: press c to close
           o open   c close   s stop   q quit
          """)
    func row(_ left: StepState, _ right: StepState, moment: Int = 0) throws -> String {
      let lines = frame(report, steps: try steps(left, right, moment: moment), rows: 19, columns: 72)
      return String(lines.first { $0.contains("left right") }?.dropFirst(24).prefix(22) ?? "")
    }
    #expect(try row(.retracted, .extended) == "┄┄┄ █│ left right │░░░░".prefix(22))
    #expect(try row(.sliding(.open), .held, moment: 2) == "┄┄<██│ left right │░░!".prefix(22))
    #expect(try row(.sliding(.close), .sliding(nil), moment: 1) == "┄┄>██│ left right │░~┄".prefix(22))
  }

  @Test("a motion is seen moving: each picture of it differs from the one before")
  func motion() throws {
    let report = try report(facing: .left, isLocated: true, reading(.left, 0.9, .near), reading(.right, 12.2, .far))
    for state in [StepState.sliding(.open), .sliding(.close), .sliding(nil)] {
      let pictures = try (0..<9).map {
        frame(report, steps: try steps(state, .retracted, moment: $0), rows: 24, columns: 80)
      }
      for (before, after) in zip(pictures, pictures.dropFirst()) { #expect(before != after) }
    }
    #expect(try steps(.sliding(nil), .held).areSliding)
    #expect(try !steps(.extended, .held).areSliding)
  }

  @Test("what a statement says of a step: in, sliding, out, held; unknown where there is none")
  func states() throws {
    func state(_ position: Position, _ phase: Phase, wish: Command.Move.Target? = nil) throws -> StepState {
      let statement = Statement(
        vehicle: try #require(UUID("5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90")), step: try #require(StepID("left")),
        position: position, phase: phase, fault: phase == .fault ? .obstructed : nil, sequence: 1,
        epoch: [UInt8](repeating: 7, count: Statement.epochSize), clock: 1000, answer: nil)
      return StepState(statement, wish: wish)
    }
    #expect(StepState(nil) == .unknown)
    #expect(try state(.close, .idle) == .retracted)
    #expect(try state(.open, .idle) == .extended)
    #expect(try state(.unknown, .idle) == .held)
    #expect(try state(.close, .fault) == .held)
    #expect(try state(.close, .moving) == .sliding(.open))
    #expect(try state(.open, .moving) == .sliding(.close))
    #expect(try state(.unknown, .moving) == .sliding(nil))
    // Who turned it round knows more.
    #expect(try state(.close, .moving, wish: .close) == .sliding(.close))
    #expect(try state(.open, .other("resting")) == .unknown)
  }

  @Test("draws a step at its side, whatever the order of the file, and lists the steps in that order")
  func order() throws {
    let report = try report(reading(.right, id: "ramp", 5, .far), reading(.left, id: "door", 5, .far))
    let lines = frame(report, rows: 24, columns: 80)
    #expect(lines.contains { $0.contains("│ door      ramp │") })
    #expect(lines.suffix(5).first?.hasPrefix("   ramp far") == true)
  }

  @Test("draws a vehicle with a step at one side only")
  func oneStep() throws {
    let lines = frame(try report(facing: .right, reading(.right, 5, .far)), rows: 12, columns: 40)
    #expect(lines[5].hasPrefix("             │      right │▒▒┄┄"))
  }

  /// Names that fill a terminal, steer it, or take two columns a character.
  static let names = [
    "Rolling Chassis", "", String(repeating: "車両", count: 200), String(repeating: "🚐", count: 100),
    "\u{1B}[2J\u{1B}]0;title\u{7}\r\n\u{202E}x", String(repeating: "e\u{301}", count: 300),
  ]

  @Test("never draws more than there is room for, nor anything that steers the terminal", arguments: names)
  func bounds(name: String) throws {
    let longest = String(repeating: "x", count: 32)
    let reports = [
      try report(name: name, at: 1e6, reading(.left), reading(.right)),
      try report(
        name: name, facing: .left, isLocated: true, reading(.left, id: longest, 1e-3, .immediate, packets: 128),
        reading(.right, 1e12, .far, rssi: -127, age: 4.9)),
      try report(name: name, reading(.left, 0.2), reading(.right, id: longest, 20)),
    ]
    for report in reports {
      for (glyphs, isASCII) in [(Glyphs.unicode, false), (.ascii, true)] {
        for rows in [1, 2, 3, 4, 5, 8, 11, 12, 14, 17, 24, 60] {
          for columns in [1, 2, 3, 4, 9, 20, 37, 38, 39, 40, 80, 200] {
            let hasKeys = rows % 2 == 0
            let lines = frame(
              report, steps: hasKeys ? try steps(.extended, .sliding(.open), moment: columns) : nil,
              news: hasKeys ? name : nil,
              keys: hasKeys ? .init(wish: rows % 4 == 0 ? nil : "opens when you are there, 10 s left") : nil,
              rows: rows, columns: columns, glyphs)
            #expect((1...rows).contains(lines.count), "\(rows)x\(columns)")
            for line in lines {
              #expect(line.columns < max(columns, 2), "\(rows)x\(columns) \(line)")
              #expect(!line.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F }, "\(rows)x\(columns)")
              #expect(!isASCII || line.utf8.allSatisfy { $0 < 0x80 }, "\(rows)x\(columns) \(line)")
            }
          }
        }
      }
    }
  }

  @Test("says nothing by color alone: without attributes the text is the same, and decisions differ in it")
  func color() throws {
    let left = try reading(.left, 0.9, .near)
    let right = try reading(.right, 12, .far)
    let reports = [
      try report(left, right), try report(facing: .left, left, right),
      try report(facing: .left, isLocated: true, left, right),
    ]
    let size = Screen.Size(rows: 24, columns: 80)
    for report in reports {
      let styled = ApproachFrame(report, size: size, glyphs: .unicode) { "<\($1.rawValue)|\($0)>" }.lines
      #expect(styled != frame(report, rows: 24, columns: 80))
      let plain = styled.map { $0.replacing(/<[0-9]+\|([^>]*)>/) { $0.1 } }
      #expect(plain == frame(report, rows: 24, columns: 80))
    }
    #expect(Set(reports.map { frame($0, rows: 24, columns: 80)[2...16] }).count == 3)
  }
}
