import Domain
import StepController
import StepProtocol
import Testing

@Suite("Journal") struct JournalTests {
  @Test("its bytes say all of it")
  func roundTrip() throws {
    let journal = Journal(
      entries: [
        left: .init(position: .open, motion: .close, fault: .timeout, challenge: [1, 2, 3]),
        right: .init(position: .close),
      ],
      counters: [TagUID("04DE5F1EACC040")!: 16_777_215])
    #expect(try Journal(parsing: journal.bytes) == journal)
    #expect(
      String(decoding: Journal(entries: [left: .init(position: .open)]).bytes, as: UTF8.self)
        == "{\"left\":{\"position\":\"open\"}}\n")
  }

  @Test("reads the journal of a version that knew no tags")
  func older() throws {
    let text = #"{"left":{"position":"open","fault":"timeout","challenge":"AQID"},"right":{"position":"close"}}"#
    let journal = try Journal(parsing: Array(text.utf8))
    #expect(journal.entries[left] == Journal.Entry(position: .open, fault: .timeout, challenge: [1, 2, 3]))
    #expect(journal.counters.isEmpty)
  }

  @Test(
    "a damaged journal is not guessed at",
    arguments: [
      "", "{", "[]", #"{"left":{}}"#, #"{"left":{"position":"ajar"}}"#, #"{"left":{"position":"open","motion":"up"}}"#,
      #"{"left":{"position":"open","fault":1}}"#, #"{"left":{"position":"open"},"left":{"position":"close"}}"#,
      #"{"tag counters":[]}"#, #"{"tag counters":{"04":1}}"#, #"{"tag counters":{"04DE5F1EACC040":-1}}"#,
      #"{"tag counters":{"04DE5F1EACC040":1,"04de5f1eacc040":2}}"#, #"{"tag counters":{"04DE5F1EACC040":"1"}}"#,
    ])
  func damaged(content: String) {
    #expect(throws: Journal.Damage.self) { try Journal(parsing: Array(content.utf8)) }
  }
}
