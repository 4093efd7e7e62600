import Domain
import Encoding
import Glibc
import Terminal
import TestSupport
import Testing

/// Figures are held against independent programs in `Tests/System/test_evaluate.py`.
@Suite("evaluate") struct EvaluateTests {
  let shell: Shell
  let typed: [String]

  init() throws {
    shell = try Shell()
    let van = try shell.folder.write(
      "van.toml",
      """
      name = "Van"
      uuid = "5f3c1c0e-7a0b-4f57-9a55-1f0f6c1b2a90"
      steps = [{ id = "left", side = "left", major = 1 }]

      """)
    let positions = try shell.folder.write("walk.csv", "capture,side,distance_m\ncorners,left,1\nlater,left,2\n")
    let capture = Repository.fixture("captures/corners.btsnoop")
    typed = ["evaluate", capture, "--positions", positions, "--vehicle", van]
  }

  @Test("results go to standard output, and what is left out is a note")
  func streams() throws {
    let ended = shell.types(typed)
    #expect(ended.ending == .status(.done))
    #expect(ended.lines.first?.hasPrefix("Van: 1 capture, ") == true)
    #expect(ended.notes == ["1 of the positions in \(typed[3]) has no capture here"])
    #expect(ended.lines.last != "")
    #expect(shell.types(typed + ["-q"]).errors == "")
    let objects = try shell.types(typed + ["--json"]).objects
    #expect(objects.count == 1 && objects[0]["captures"] == 1 && objects[0]["law"] == .null)
  }

  @Test("a signal ends it before anything is printed or drawn")
  func interrupted() {
    var shell = shell
    shell.isInterrupted = true
    let ended = shell.types(typed + ["--plot", shell.path("plots")])
    #expect(ended.ending == .signal(SIGINT) && ended.output == "")
  }
}
