import CommandParts
import Domain
import Glibc
import StepController
import StepProtocol
import SystemIO
import TestSupport
import Testing

@testable import StepDaemon

@Suite("Metrics") struct MetricsTests {
  private var metrics = Metrics(
    of: [left, right], build: Build(version: "1.2.3", commit: "0123456789ab", architecture: "arm64"),
    at: 1_800_000_000)
  private let asker = Asker(rider: "alice", token: "t-1", method: .nfc)

  private func lines(_ name: Metrics.Name) -> [String] {
    metrics.text.split(separator: "\n").filter {
      $0.hasPrefix(name.rawValue + "{") || $0.hasPrefix(name.rawValue + " ")
    }
    .map { String($0.dropFirst(name.rawValue.count)) }
  }

  @Test("what can be counted is there from the start")
  func zero() {
    #expect(lines(.build) == [#"{version="1.2.3",commit="0123456789ab",architecture="arm64"} 1"#])
    #expect(lines(.start) == [" 1800000000"])
    #expect(lines(.commands).count == 10 && lines(.commands).allSatisfy { $0.hasSuffix(" 0") })
    #expect(lines(.connections) == [" 0"])
    #expect(lines(.faults) == [])
  }

  @Test("a build of an unknown commit says none")
  func unknownCommit() {
    let build = Build(version: "1.2.3", commit: nil, architecture: "amd64")
    let text = Metrics(of: [left], build: build, at: 0).text
    #expect(text.contains("\nstepd_build_info{version=\"1.2.3\",architecture=\"amd64\"} 1\n"))
  }

  @Test("each command is counted once, by what became of it")
  mutating func commands() {
    for event: Controller.LogEntry in [
      .challenged(left, by: asker), .began(left, .open, by: asker), .ended(left, .open, by: asker),
      .refused(right, .wrongStep, .wrongMinor, by: asker), .refused(right, .expired, nil, by: asker),
      .stopped(left, by: asker), .retracts(left), .failed(left, .timeout, "late", by: asker),
    ] {
      metrics.count(event)
    }
    metrics.count(Outcome(left, .ignored, cause: CommandOpener.Reason.excess(rider: "alice").cause), times: 7)
    let counted = lines(.commands).filter { !$0.hasSuffix(" 0") }
    #expect(
      counted == [
        #"{step="left",outcome="began"} 1"#, #"{step="left",outcome="challenged"} 1"#,
        #"{step="left",outcome="stopped"} 1"#, #"{step="right",outcome="refused"} 2"#,
      ])
    #expect(
      lines(.refusals) == [
        #"{step="right",code="expired",cause=""} 1"#, #"{step="right",code="wrong_step",cause="wrong_minor"} 1"#,
      ])
    #expect(
      lines(.motions) == [
        #"{step="left",target="close",cause="vehicle_moving"} 1"#, #"{step="left",target="open",cause="command"} 1"#,
      ])
    #expect(lines(.faults) == [#"{step="left",fault="timeout"} 1"#])
    #expect(lines(.ignored) == [#"{reason="excess"} 7"#, #"{reason="unauthenticated"} 0"#])
    #expect(!metrics.text.contains("alice") && !metrics.text.contains("t-1"))
  }

  @Test("journals are counted by the time that they took, and those that failed are not")
  mutating func journals() {
    for ticket in 1...3 { metrics.begin(ticket) }
    metrics.written(.failed(1, "no space"))
    metrics.written(.committed(2))
    metrics.written(.committed(3))
    metrics.written(.committed(4))
    let text = metrics.text
    #expect(text.contains("stepd_journal_commit_seconds_count 2\n"))
    #expect(text.contains("stepd_journal_commit_seconds_bucket{le=\"+Inf\"} 2\n"))
    metrics.count(.notJournaled(left, "no space"))
    #expect(lines(.commitFailures) == [" 1"])
  }

  @Test("a guard that nobody asks is idle")
  mutating func guardStates() {
    metrics.set(nil, of: left)
    metrics.set(.approaching, of: right)
    let known = lines(.guardState).filter { $0.hasSuffix(" 1") }
    #expect(known == [#"{step="left",state="idle"} 1"#, #"{step="right",state="approaching"} 1"#])
  }

  @Test("the file is replaced as a whole for everybody to read, and goes with the program")
  func file() throws {
    let folder = try TemporaryFolder()
    let path = "\(folder.path)/stepd.prom"
    let file = try MetricsFile(path, build: Build(version: "1", commit: nil, architecture: "amd64"))
    file.write("one\n")
    while !Files.exists(path) { usleep(1_000) }
    var status = stat()
    #expect(stat(path, &status) == 0 && status.st_mode & 0o7777 == 0o644)
    #expect(try Files.read(path) == Array("one\n".utf8))
    file.close()
    #expect(try Files.names(in: folder.path) == [])
  }

  @Test("what cannot be replaced is still there when the program ends")
  func noFile() throws {
    let folder = try TemporaryFolder()
    let path = "\(folder.path)/stepd.prom"
    #expect(mkfifo(path, 0o600) == 0)
    let file = try MetricsFile(path, build: Build(version: "1", commit: nil, architecture: "amd64"))
    file.write("one\n")
    while next(file.failures) == nil { usleep(1_000) }
    file.close()
    var status = stat()
    #expect(lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
  }

  @Test("why it cannot be written is told once, and again when the reason is another")
  func failures() throws {
    let folder = try TemporaryFolder()
    let file = try MetricsFile(
      "\(folder.path)/none/stepd.prom", build: Build(version: "1", commit: nil, architecture: "amd64"))
    for _ in 0..<3 {
      file.write("one\n")
      usleep(30_000)
    }
    #expect(next(file.failures)?.code == ENOENT)
    try Files.create("\(folder.path)/none", with: [], mode: 0o600)
    file.write("two\n")
    #expect(next(file.failures)?.code == ENOTDIR)
  }
}
