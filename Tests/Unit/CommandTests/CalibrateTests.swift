import Domain
import Encoding
import Glibc
import Ranging
import SystemIO
import Terminal
import TestSupport
import Testing

@Suite("stepctl calibrate")
struct CalibrateTests {
  private let shell: Shell
  private let file: String

  init() throws {
    shell = try Shell()
    file = try shell.vehicleFile()
  }

  private func calibrates(_ more: String..., answers: [String]? = nil) -> Shell.Ended {
    var shell = shell
    shell.answers = answers
    return shell.types(["calibrate", "--vehicle", file, "--captures", shell.path("heard")] + more)
  }

  /// Captures of all positions in front of a step whose beacon has this power at 1 m, and loses some in a pocket.
  private func record(_ step: Side, power: Double, pocket: Double = 4, carries: [String] = ["hand", "pocket"]) throws {
    for distance in [0.3, 1, 3] {
      for carry in carries {
        let level = power - 20 * log10(distance) - (carry == "pocket" ? pocket : 0)
        let name = "heard/\(step.rawValue)-\(distance == 0.3 ? "0.3" : "\(Int(distance))")-\(carry).btsnoop"
        let frames = (0..<60).flatMap { tick -> [(Double, Side, Int8?)] in
          // A triangle of ±2 dB.
          let ripple = [0, 1, 2, 1, 0, -1, -2, -1][tick % 8]
          let other: Side = step == .left ? .right : .left
          let level = Int8(level.rounded()) + Int8(ripple)
          return [(Double(tick) / 10, step, level), (Double(tick) / 10 + 0.05, other, -100)]
        }
        _ = try shell.capture(name, frames)
      }
    }
  }

  @Test("says what it measured, and writes it when the answer is yes")
  func writing() throws {
    try record(.left, power: -72)
    try record(.right, power: -50)
    let before = try TemporaryFolder.text(file)
    let ended = calibrates(answers: ["what?", "y"])
    #expect(ended.ending == .status(.done))
    #expect(ended.lines.first == "left: -74 dBm at 1 m, not -59 as the beacon says")
    let positions = ended.lines.filter { $0.hasPrefix("  ") && $0.contains(" packets, ") }
    #expect(positions.count == 12)
    #expect(positions.allSatisfy { $0.contains(": 60 packets") || $0.contains(" 60 packets") })
    let zones = ended.lines.filter { $0.hasPrefix("  correct zone ") }
    #expect(zones.count == 2)
    let form = /\ *correct zone \d+ % \(was \d+ %\), each position judged by the others/
    #expect(zones.allSatisfy { $0.wholeMatch(of: form) != nil }, "\(zones)")
    let summary = /(left|right): correct zone \d+ % \(was \d+ %\)/
    #expect(ended.lines.suffix(2).allSatisfy { $0.wholeMatch(of: summary) != nil }, "\(ended.lines)")
    #expect(ended.lines.contains("wrote \(file)"))
    let question = "write left -74 dBm, right -52 dBm into \(file)? (n or s: not now, q: quit) [Y/n] "
    let note = "riders' copies of this file still have the old values; make them again\n"
    #expect(ended.errors == "\(question)\(question)\(note)")
    let after = try TemporaryFolder.text(file)
    #expect(after != before)
    #expect(after.contains("measured_power = -74"))
    #expect(after.contains("measured_power = -52"))
  }

  @Test("writes without a question with --yes, and nothing with --dry-run or without need")
  func flags() throws {
    try record(.left, power: -72)
    try record(.right, power: -50)
    let before = try TemporaryFolder.text(file)
    let dry = calibrates("--dry-run", "--json")
    #expect(dry.ending == .status(.done))
    #expect(try dry.objects.first?["written"] == .bool(false))
    #expect(try TemporaryFolder.text(file) == before)
    let written = calibrates("--yes", "--json", "-q")
    #expect(written.ending == .status(.done))
    #expect(written.errors == "")
    let object = try #require(try written.objects.first)
    #expect(object["written"] == .bool(true))
    #expect(object["file"] == .string(file))
    let steps = try #require(object["steps"]?.array)
    #expect(steps.map { $0["measured_power_dbm"] } == [.integer(-74), .integer(-52)])
    #expect(steps.map { $0["previous_power_dbm"] } == [.integer(-59), .integer(-59)])
    #expect(steps[0]["positions"]?.array?.count == 6)
    let again = calibrates("--yes")
    #expect(again.ending == .status(.done))
    #expect(again.lines.first == "left: -74 dBm at 1 m, as the vehicle file says")
    #expect(!again.output.contains("wrote"))
  }

  @Test("asks nobody where nobody may be asked, and takes silence for no answer")
  func noAnswer() throws {
    try record(.left, power: -72)
    try record(.right, power: -50)
    let before = try TemporaryFolder.text(file)
    let forbidden = calibrates("--no-input")
    #expect(forbidden.ending == .status(.usage))
    #expect(forbidden.errors == "stepctl: error: needs confirmation; use --yes\n")
    #expect(!forbidden.output.isEmpty)
    let alone = calibrates()
    #expect(alone.ending == .status(.noInput))
    #expect(alone.errors.hasSuffix("\nstepctl: error: no answer: standard input has ended\n"))
    let no = calibrates(answers: ["No"])
    #expect(no.ending == .status(.done))
    #expect(try TemporaryFolder.text(file) == before)
  }

  @Test("--yes does not write what is worse")
  func worse() throws {
    try record(.left, power: -59, carries: ["hand"])
    try record(.left, power: -59, pocket: 26, carries: ["pocket"])
    let before = try TemporaryFolder.text(file)
    let ended = calibrates("--step", "left", "--yes")
    #expect(ended.ending == .status(.failure))
    #expect(
      ended.errors == """
        stepctl: error: not written: the correct zone would be found less often than before
        hint: run it with --again and mind the positions that are far off, or without --yes

        """)
    let asked = calibrates("--step", "left", answers: [""])
    #expect(asked.ending == .status(.done))
    #expect(asked.errors.contains("; the correct zone would be found less often? (n or s: not now, q: quit) [y/N] "))
    #expect(try TemporaryFolder.text(file) == before)
  }

  @Test("leaves out what is missing, and needs three positions")
  func missing() throws {
    try record(.left, power: -72, carries: ["hand"])
    let ended = calibrates("--step", "left", "--dry-run")
    #expect(ended.ending == .status(.done))
    #expect(ended.notes.filter { $0.hasPrefix("there is no ") }.count == 3)
    try #require(unlink(shell.path("heard/left-1-hand.btsnoop")) == 0)
    let few = calibrates("--step", "left", "--dry-run", "-q")
    #expect(few.ending == .status(.badData))
    #expect(
      few.errors == """
        stepctl: error: the left step cannot be calibrated: calibration needs 3 positions, and only 2 can be used
        hint: nothing was written; measure it again

        """)
    let other = calibrates("--step", "rear")
    #expect(other.ending == .status(.usage))
    #expect(other.errors == "stepctl: error: Van has no step rear: it has left, right\n")
  }

  @Test("a capture is not a radio to be led with, and a radio's error can be tried again")
  func guided() throws {
    let capture = shell.types("calibrate", "--vehicle", file, "--radio", "btsnoop:x")
    #expect(capture.ending == .status(.usage))
    #expect(
      capture.errors == """
        stepctl: error: btsnoop:x is one recording, and each position needs its own
        hint: put them into a folder and use --captures

        """)
    var shell = shell
    shell.answers = ["", "y", "", "n"]
    let radio = "h4:unix:\(shell.path("none"))"
    let ended = shell.types("calibrate", "--vehicle", file, "--radio", radio, "--step", "left")
    #expect(ended.ending == .status(.unavailable))
    let request = "1 of 6: 0.3 m in front of the left step, in hand: press Enter (s: leave it out, q: quit) "
    let beginning = """
      Calibrates Van: left.
      There are 6 positions in front of each step. Stand still at each until enough
      was heard, which takes 5 to 10 seconds. Nothing is written before you agree.
      What was measured is kept in \(file).calibration:
      after q or Control-C the next run goes on from there.

      """
    let fault = "cannot connect to h4:unix:\(shell.path("none")): No such file or directory"
    let question = "try again? (s: leave it out, q: quit) [Y/n] "
    #expect(
      ended.errors
        == "\(beginning)\(request)\(fault)\n\(question)\(request)\(fault)\n\(question)stepctl: error: \(fault)\n")
  }

  @Test("q ends it and s leaves a position out also where the radio failed")
  func keysAfterAnError() throws {
    let quit = goesOn(answers: ["", "q"])
    #expect(quit.ending == .status(.failure))
    #expect(quit.errors.hasSuffix("try again? (s: leave it out, q: quit) [Y/n] "))
    let left = goesOn(answers: ["", "what?", "S", "q"])
    #expect(left.ending == .status(.failure))
    #expect(left.errors.contains("2 of 6: "))
    #expect(
      left.errors.hasSuffix("1 of 6 positions are kept in \(file).calibration; the next run goes on from there\n"))
  }

  @Test("at the last question q ends it and s says no; both keep what was measured")
  func keysAtTheEnd() throws {
    try keep(6)
    let before = try TemporaryFolder.text(file)
    let quit = goesOn(answers: ["q"])
    #expect(quit.ending == .status(.failure))
    #expect(quit.lines.last?.hasSuffix(", not written") == true)
    #expect(quit.errors.contains("6 of 6 positions are kept in "))
    #expect(!quit.errors.contains("error"))
    let told = goesOn("--json", answers: ["q"])
    #expect(told.ending == .status(.failure))
    #expect(try told.objects.map { $0["written"] ?? $0["code"] } == [.bool(false), "failure"])
    #expect(goesOn(answers: ["s"]).ending == .status(.done))
    #expect(try TemporaryFolder.text(file) == before)
    #expect(Files.exists("\(file).calibration"))
  }

  private static let positions: [(distance: Double, carry: String)] = [
    (0.3, "hand"), (0.3, "pocket"), (1, "hand"), (1, "pocket"), (3, "hand"), (3, "pocket"),
  ]

  /// What an earlier run has kept of the left step: frames at 10 Hz with this power at 1 m, at the first positions.
  private func keep(_ count: Int, power: Int = -70) throws {
    let positions = Self.positions.prefix(count).map { distance, carry -> String in
      let level = power - Int((20 * log10(distance)).rounded())
      let frames = (0..<60).map { "[1,1,-59,\(level + [0, 1, 0, -1][$0 % 4]),\($0 * 100_000)]" }
      let name = distance == 0.3 ? "0.3" : "\(Int(distance))"
      return #"{"step":"left","distance":"\#(name)","carry":"\#(carry)","frames":[\#(frames.joined(separator: ","))]}"#
    }
    _ = try shell.folder.write(
      "van.toml.calibration",
      #"{"vehicle":"\#(Shell.vehicle)","noted":1795275000,"positions":[\#(positions.joined(separator: ","))]}"#)
  }

  private func goesOn(_ more: String..., answers: [String]? = nil) -> Shell.Ended {
    var shell = shell
    shell.answers = answers
    let radio = "h4:unix:\(shell.path("none"))"
    return shell.types(["calibrate", "--vehicle", file, "--radio", radio, "--step", "left"] + more)
  }

  @Test("what an earlier run has kept is not asked for again, and goes when it was written")
  func resumed() throws {
    try keep(6)
    let ended = goesOn(answers: ["y"])
    #expect(ended.ending == .status(.done))
    #expect(ended.errors.contains("6 of 6 positions are kept, the last from 2026-"))
    #expect(!ended.errors.contains("press Enter"))
    #expect(ended.lines.last?.hasPrefix("left: correct zone ") == true)
    #expect(try TemporaryFolder.text(file).contains("measured_power = -70"))
    #expect(!Files.exists("\(file).calibration"))
  }

  @Test("what was not written stays for the next run, and so does what is kept when it ends early")
  func staysKept() throws {
    try keep(6)
    let dry = goesOn("--dry-run")
    #expect(dry.ending == .status(.done))
    #expect(dry.lines.last?.hasSuffix(", not written") == true)
    #expect(goesOn(answers: ["n"]).ending == .status(.done))
    #expect(Files.exists("\(file).calibration"))
    try keep(2)
    let quit = goesOn(answers: ["q"])
    #expect(quit.ending == .status(.failure))
    #expect(quit.errors.contains("3 of 6: 1 m in front of the left step, in hand"))
    #expect(
      quit.errors.hasSuffix(
        "2 of 6 positions are kept in \(file).calibration; the next run goes on from there\n"))
    #expect(!quit.errors.contains("error"))
    let told = goesOn("--json", answers: ["q"])
    #expect(try told.objects.map { $0["code"] } == ["failure"])
  }

  @Test("positions that are left out stay so; with too few the next run asks for them again")
  func leftOut() throws {
    try keep(2)
    let few = goesOn(answers: ["s", "s", "s", "s"])
    #expect(few.ending == .status(.badData))
    #expect(!Files.exists("\(file).calibration"))
    try keep(5)
    #expect(goesOn("--dry-run", answers: ["s"]).ending == .status(.done))
    let again = goesOn("--dry-run")
    #expect(again.ending == .status(.done))
    #expect(again.errors.contains("6 of 6 positions are kept"))
  }

  @Test("--again begins anew, whatever is kept")
  func anew() throws {
    for text in [nil, "{", #"{"vehicle":"9f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90","noted":1,"positions":[]}"#] {
      try keep(6)
      if let text { _ = try shell.folder.write("van.toml.calibration", text) }
      let ended = goesOn("--again", answers: ["q"])
      #expect(ended.ending == .status(.failure))
      #expect(ended.errors.contains("1 of 6: 0.3 m"))
      #expect(!Files.exists("\(file).calibration"))
    }
  }

  @Test(
    "a file that is damaged, or another vehicle's, is said to be so, and stays",
    arguments: [
      "", "[]", #"{"vehicle":1}"#, #"{"vehicle":"V","noted":1,"positions":[1]}"#,
      #"{"vehicle":"V","noted":1,"positions":[{"step":"left","distance":"2","carry":"hand","left_out":true}]}"#,
      #"{"vehicle":"V","noted":1,"positions":[{"step":"left","distance":"1","carry":"hand","left_out":false}]}"#,
      #"{"vehicle":"V","noted":1,"positions":[{"step":"left","distance":"1","carry":"hand","frames":[[1,1,-59,-70]]}]}"#,
      #"{"vehicle":"V","noted":1,"positions":[{"step":"left","distance":"1","carry":"hand","frames":[[1,1,-59,300,0]]}]}"#,
      #"{"vehicle":"V","noted":1,"positions":[{"step":"left","distance":"1","carry":"hand","frames":[[1,1,-59,-70,-1]]}]}"#,
      #"{"vehicle":"9f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90","noted":1,"positions":[]}"#,
    ])
  func damaged(text: String) throws {
    let text = text.replacing("\"V\"", with: "\"\(Shell.vehicle)\"")
    _ = try shell.folder.write("van.toml.calibration", text)
    let ended = goesOn(answers: ["q"])
    #expect(ended.ending == .status(.badData))
    #expect(ended.errors.contains("\(file).calibration is "))
    #expect(ended.errors.contains("hint: use --again"))
    #expect(try TemporaryFolder.text("\(file).calibration") == text)
  }
}
