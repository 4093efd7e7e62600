import TestSupport
import Foundation
import StepController
import Domain
import StepProtocol
import SystemIO
import Testing

@Suite("Journal") struct JournalTests {
  let folder = try! TemporaryFolder()
  var path: String { folder.path + "/journal.json" }

  func failure(_ content: String) -> Journal.Failure? {
    try! content.write(toFile: path, atomically: true, encoding: .utf8)
    do throws(Journal.Failure) {
      _ = try Journal.open(path, steps: [left], installed: .close)
      return nil
    } catch { return error }
  }

  @Test("keeps what was recorded")
  func keeps() throws {
    let entry = Journal.Entry(position: .open, motion: .close, fault: .timeout, challenge: [1, 2, 3])
    do {
      var journal = try Journal.open(path, steps: [left, right], installed: .close)
      #expect(journal.entries[left] == Journal.Entry(position: .close))
      try journal.record(entry, for: left)
    }
    let journal = try Journal.open(path, steps: [left, right], installed: .close)
    #expect(journal.entries[left] == entry)
    #expect(journal.entries[right] == Journal.Entry(position: .close))
  }

  @Test("keeps the counters of tags, beside the steps")
  func counters() throws {
    let uid = TagUID("04DE5F1EACC040")!
    do {
      var journal = try Journal.open(path, steps: [left], installed: .close)
      try journal.record(DynamicTag.Reading(uid: uid, counter: 16_777_215))
      try journal.record(Journal.Entry(position: .open), for: left)
    }
    let journal = try Journal.open(path, steps: [left], installed: .close)
    #expect(journal.counters == [uid: 16_777_215])
    #expect(journal.entries[left] == Journal.Entry(position: .open))
  }

  @Test("reads the journal of a version that knew no tags")
  func older() throws {
    let text = #"{"left":{"position":"open","fault":"timeout","challenge":"AQID"},"right":{"position":"close"}}"#
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    let journal = try Journal.open(path, steps: [left, right], installed: .close)
    #expect(journal.entries[left] == Journal.Entry(position: .open, fault: .timeout, challenge: [1, 2, 3]))
    #expect(journal.counters.isEmpty)
  }

  @Test("one program at a time")
  func locked() throws {
    let journal = try Journal.open(path, steps: [left], installed: .close)
    #expect(throws: Journal.Failure.inUse(path)) {
      do throws(Journal.Failure) { _ = try Journal.open(path, steps: [left], installed: .close) } catch { throw error }
    }
    _ = journal.entries
  }

  @Test(
    "a damaged journal is not guessed at",
    arguments: [
      "", "{", "[]", #"{"left":{}}"#, #"{"left":{"position":"ajar"}}"#, #"{"left":{"position":"open","motion":"up"}}"#,
      #"{"left":{"position":"open","fault":1}}"#, #"{"left":{"position":"open"},"left":{"position":"close"}}"#,
      #"{"tag counters":[]}"#, #"{"tag counters":{"04":1}}"#, #"{"tag counters":{"04DE5F1EACC040":-1}}"#,
      #"{"tag counters":{"04DE5F1EACC040":1,"04de5f1eacc040":2}}"#, #"{"tag counters":{"04DE5F1EACC040":"1"}}"#,
    ])
  func damaged(content: String) throws {
    guard case .damaged(let where_, _)? = failure(content) else {
      Issue.record("accepted \(content)")
      return
    }
    #expect(where_ == path)
  }

  @Test("a journal that cannot be opened is not taken for none")
  func unavailable() throws {
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path)
    let loops = Journal.Failure.unavailable(SystemError("open", path, code: ELOOP))
    #expect(throws: loops) {
      do throws(Journal.Failure) { _ = try Journal.open(path, steps: [left], installed: .close) } catch { throw error }
    }
    #expect(throws: loops) { try Journal.check(path) }
  }

  @Test("an unfinished temporary file of a crash is no obstacle")
  func leftover() throws {
    try "{".write(toFile: path + ".\(getpid()).new", atomically: false, encoding: .utf8)
    var journal = try Journal.open(path, steps: [left], installed: .close)
    try journal.record(Journal.Entry(position: .open), for: left)
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "{\"left\":{\"position\":\"open\"}}\n")
  }
}
