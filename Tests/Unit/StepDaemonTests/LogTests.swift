import CommandParts
import Domain
import Glibc
import StepController
import StepProtocol
import SystemIO
import TestSupport
import Testing

@testable import StepDaemon

/// A log, and both ends that its lines may come to.
private final class Bench {
  let journal: PlayedSocket
  let log: Log
  private let reading: Descriptor
  private let writing: Descriptor

  /// - Parameters:
  ///   - isJournal: whether standard error is said to be the journal.
  ///   - answers: whether the journal has its socket.
  init(isJournal: Bool = true, answers: Bool = true) throws {
    var ends: [Int32] = [0, 0]
    _ = try check("make a pipe") { pipe(&ends) }
    reading = Descriptor(adopting: ends[0])
    writing = Descriptor(adopting: ends[1])
    journal = try PlayedSocket(isAbstract: false)
    var status = stat()
    _ = fstat(writing.number, &status)
    let stream = isJournal ? "\(status.st_dev):\(status.st_ino)" : "\(status.st_dev):1"
    log = try Log(isVerbose: false, to: writing.number, journal: answers ? journal.name : "/nonexistent/socket") {
      $0 == "JOURNAL_STREAM" ? stream : nil
    }
  }

  /// What has come to standard error.
  func written() throws -> String {
    log.finish()
    var bytes = [UInt8](repeating: 0, count: 4096)
    guard try waitReadable([reading.number], until: .now)[0] else { return "" }
    let count = try bytes.withUnsafeMutableBytes { try reading.read(into: $0) }
    return String(decoding: bytes.prefix(count), as: UTF8.self)
  }
}

@Suite("The log") struct LogTests {
  private let asker = Asker(
    rider: "alice", token: "t-1", method: .beacon, zone: .near, distance: 1.26, asked: .open)

  @Test("the journal gets a line with fields, and standard error nothing")
  func fields() throws {
    let bench = try Bench()
    bench.log.write(.refused(left, .wrongStep, .otherNearer, by: asker))
    #expect(
      try bench.journal.next() == """
        PRIORITY=5
        SYSLOG_IDENTIFIER=stepd
        MESSAGE=left: alice asked to open: wrong step
        STEPCTL_STEP=left
        STEPCTL_OUTCOME=refused
        STEPCTL_CODE=wrong_step
        STEPCTL_CAUSE=other_nearer
        STEPCTL_JTI=t-1
        STEPCTL_METHOD=beacon
        STEPCTL_ZONE=near
        STEPCTL_DISTANCE=1.3

        """)
    bench.log.write(.began(left, .open, by: asker))
    #expect(
      try bench.journal.next()?.contains("\nSTEPCTL_OUTCOME=began\nSTEPCTL_POSITION=open\nSTEPCTL_JTI=t-1\n") == true)
    bench.log.write(.failed(left, .obstructed, "a person stands in the way", by: nil))
    #expect(
      try bench.journal.next() == """
        PRIORITY=3
        SYSLOG_IDENTIFIER=stepd
        MESSAGE=left: fault obstructed: a person stands in the way
        STEPCTL_STEP=left
        STEPCTL_OUTCOME=fault
        STEPCTL_CODE=obstructed

        """)
    #expect(try bench.written() == "")
  }

  @Test(
    "a refusal is said as people do",
    arguments: [
      ("anna", .unknown, RefusalCode.tokenExpired, "anna asked for the status: token expired"),
      ("anna", .close, .notNear, "anna asked to close: not near"),
      ("anna", .stop, .tokenRevoked, "anna asked to stop: token revoked"),
      ("anna", nil, .malformed, "anna asked for something: malformed"),
      // A name that could be read as another part of the line.
      ("x: is open", .open, .busy, "“x: is open” asked to open: busy"),
    ] as [(String, VehicleEvent.Position?, RefusalCode, String)])
  func refusal(_ rider: String, _ asked: VehicleEvent.Position?, _ code: RefusalCode, _ line: String) throws {
    let bench = try Bench(isJournal: false)
    bench.log.write(.refused(left, code, nil, by: Asker(rider: rider, token: "t-1", asked: asked)))
    #expect(try bench.written() == "stepd: left: \(line)\n")
  }

  @Test("a field names nobody, and no text makes a field of its own")
  func attack() throws {
    let bench = try Bench()
    let asker = Asker(rider: "mallory\nPRIORITY=0", token: "x\nSTEPCTL_STEP=right\n\u{1B}[2J")
    bench.log.write(.stopped(left, by: asker))
    let lines = try #require(try bench.journal.next()).split(separator: "\n")
    #expect(lines.filter { $0.hasPrefix("PRIORITY=") } == ["PRIORITY=5"])
    #expect(lines.filter { $0.hasPrefix("STEPCTL_STEP=") } == ["STEPCTL_STEP=left"])
    #expect(lines.filter { $0.contains("mallory") }.allSatisfy { $0.hasPrefix("MESSAGE=") })
    #expect(!lines.contains { $0.contains("\u{1B}") })
    // One that is far too long.
    bench.log.write(.notice, String(repeating: "ä", count: 200_000))
    #expect(try bench.journal.next()?.utf8.count ?? 0 < 4096)
  }

  @Test("where the journal's socket does not answer, the line goes to standard error with its priority")
  func withoutSocket() throws {
    let bench = try Bench(answers: false)
    bench.log.write(.ended(left, .open, by: asker))
    #expect(try bench.written() == "<5>left: is open\n")
  }

  @Test("where standard error is something else, the variable alone says nothing")
  func inherited() throws {
    let bench = try Bench(isJournal: false)
    bench.log.write(.ended(left, .open, by: asker))
    #expect(try bench.written() == "stepd: left: is open\n")
    #expect(try bench.journal.next(within: .zero) == nil)
  }

  @Test("lines that a full disk does not take are lost and counted")
  func fullDisk() throws {
    let disk = try Descriptor.open("/dev/full", O_WRONLY)
    let log = try Log(isVerbose: false, to: disk.number) { _ in nil }
    for _ in 1...3 { log.write(.notice, "a line") }
    log.finish()
    #expect(log.lost == 3)
  }
}
