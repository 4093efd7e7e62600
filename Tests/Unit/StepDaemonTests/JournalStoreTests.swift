import Domain
import Foundation
import StepController
import StepProtocol
import SystemIO
import TestSupport
import Testing

@testable import StepDaemon

/// A store under test: the real one on a disk, or the played one.
private struct Store {
  let store: any JournalStore
  let reports: Mailbox<JournalReport>
  let medium: () throws -> Journal
  let breaks: (Bool) -> Void

  enum Kind: CaseIterable { case file, played }

  init(_ kind: Kind, _ folder: TemporaryFolder) throws {
    let reports = try Mailbox<JournalReport>()
    self.reports = reports
    switch kind {
    case .file:
      let place = folder.path + "/journal"
      try Files.createFolder(place, mode: 0o700)
      store = try FileJournal(place + "/journal.json", steps: [left, right], installed: .close) { reports.post($0) }
      medium = { try Journal(parsing: Files.read(place + "/journal.json")) }
      breaks = { _ = $0 ? rename(place, place + ".away") : rename(place + ".away", place) }
    case .played:
      let installed = Journal.Entry(position: .close)
      let played = PlayedJournal(Journal(entries: [left: installed, right: installed])) { reports.post($0) }
      store = played
      medium = { played.medium }
      breaks = { played.failure = $0 ? "No such file or directory" : nil }
    }
  }
}

@Suite("Journal stores, real and played") struct JournalStoreTests {
  private let folder = try! TemporaryFolder()
  private let begun = Journal(entries: [left: .init(position: .close, motion: .open, challenge: [1])])

  @Test("what is reported as committed is on the medium", arguments: Store.Kind.allCases)
  fileprivate func committed(kind: Store.Kind) throws {
    let store = try Store(kind, folder)
    let installed = Journal.Entry(position: .close)
    #expect(try store.medium() == Journal(entries: [left: installed, right: installed]))
    for (ticket, position) in [(7, Position.open), (8, .close), (9, .unknown)] {
      let journal = Journal(entries: [left: .init(position: position)])
      store.store.commit(journal, ticket)
      #expect(next(store.reports) == .committed(ticket))
      #expect(try store.medium() == journal)
    }
  }

  @Test("the journal and its lock are for their owner alone, when they are made and after each commit")
  func mode() throws {
    let store = try Store(.file, folder)
    let path = folder.path + "/journal/journal.json"
    // Whoever may open the lock could take it, and stepd would not start.
    #expect(try TemporaryFolder.mode(path + ".lock") == 0o600)
    #expect(try TemporaryFolder.mode(path) == 0o600)
    store.store.commit(begun, 1)
    #expect(next(store.reports) == .committed(1))
    #expect(try TemporaryFolder.mode(path) == 0o600)
  }

  @Test("each ticket has one report, in their order, however many wait", arguments: Store.Kind.allCases)
  fileprivate func order(kind: Store.Kind) throws {
    let store = try Store(kind, folder)
    for ticket in 1...100 {
      store.store.commit(Journal(counters: [TagUID("04DE5F1EACC040")!: UInt32(ticket)]), ticket)
    }
    #expect((1...100).map { _ in next(store.reports) } == (1...100).map { .committed($0) })
    #expect(try store.medium().counters.values.first == 100)
    #expect(store.reports.take() == nil)
  }

  @Test("a medium that fails is told, keeps what it has, and serves again", arguments: Store.Kind.allCases)
  fileprivate func failure(kind: Store.Kind) throws {
    let store = try Store(kind, folder)
    store.breaks(true)
    store.store.commit(begun, 1)
    guard case .failed(1, let reason)? = next(store.reports) else {
      Issue.record("no failure")
      return
    }
    #expect(reason.hasSuffix("No such file or directory"))
    store.breaks(false)
    #expect(try store.medium().entries[left] == Journal.Entry(position: .close))
    store.store.commit(begun, 2)
    #expect(next(store.reports) == .committed(2))
    #expect(try store.medium() == begun)
  }
}

@Suite("The journal's file") struct FileJournalTests {
  private let folder = try! TemporaryFolder()
  private var path: String { folder.path + "/journal.json" }

  private func open(installed: Position = .close, report: @escaping @Sendable (JournalReport) -> Void = { _ in }) throws
    -> FileJournal
  {
    try FileJournal(path, steps: [left, right], installed: installed, report: report)
  }

  @Test("is made at the first start, with the steps where they were installed, for its owner only")
  func first() throws {
    let entry = Journal.Entry(position: .open)
    #expect(try open(installed: .open).found == Journal(entries: [left: entry, right: entry]))
    #expect(try Journal(parsing: Files.read(path)) == Journal(entries: [left: entry, right: entry]))
    #expect(try TemporaryFolder.mode(path) == 0o600)
    // What it says holds from then on.
    #expect(try open(installed: .close).found.entries[left] == entry)
  }

  @Test("that was lost says that nobody knows where the steps are")
  func lost() throws {
    _ = try open()
    unlink(path)
    let lost = Journal(entries: [left: .lost, right: .lost])
    #expect(try open().found == lost)
    #expect(try open().found == lost)
    unlink(path)
    unlink(path + ".lock")
    #expect(try open().found.entries[left] == Journal.Entry(position: .close))
  }

  @Test("keeps what was written, also for steps that it does not know")
  func keeps() throws {
    let entry = Journal.Entry(position: .open, motion: .close, fault: .timeout, challenge: [1, 2, 3])
    try folder.write("journal.json", String(decoding: Journal(entries: [left: entry]).bytes, as: UTF8.self))
    #expect(try open().found == Journal(entries: [left: entry, right: .init(position: .close)]))
  }

  @Test("has one program at a time")
  func locked() throws {
    let journal = try open()
    #expect(throws: JournalError.inUse(path)) { try open() }
    _ = journal.found
  }

  @Test("has one program at a time, though the file beside it is removed, and the journal replaced again and again")
  func lockedItself() throws {
    let reports = try Mailbox<JournalReport>()
    let journal = try open { reports.post($0) }
    for ticket in 1...3 {
      unlink(path + ".lock")
      #expect(throws: JournalError.inUse(path)) { try open() }
      journal.commit(Journal(entries: [left: .init(position: .open)]), ticket)
      #expect(next(reports) == .committed(ticket))
    }
  }

  @Test(
    "that is a pipe, a device or a folder is damaged, and is not waited for", arguments: ["pipe", "device", "folder"])
  func irregular(kind: String) throws {
    switch kind {
    case "pipe": mkfifo(path, 0o600)
    case "device": try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/dev/zero")
    default: mkdir(path, 0o700)
    }
    let damaged = JournalError.damaged(path, "not a regular file")
    #expect(throws: damaged) { try open() }
    #expect(throws: damaged) { try FileJournal.check(path) }
  }

  @Test("that is too large is damaged, which no restart mends")
  func large() throws {
    try folder.write("journal.json", String(repeating: " ", count: 65537) + "{}")
    let damaged = JournalError.damaged(path, "larger than 65536 bytes")
    #expect(throws: damaged) { try open() }
    #expect(throws: damaged) { try FileJournal.check(path) }
    #expect(damaged.exitStatus == .badData)
  }

  @Test("that is damaged is not guessed at, and stays as it is")
  func damaged() throws {
    try folder.write("journal.json", #"{"left":{"position":"ajar"}}"#)
    let damaged = JournalError.damaged(path, "the entry of left cannot be read")
    #expect(throws: damaged) { try open() }
    #expect(throws: damaged) { try FileJournal.check(path) }
    #expect(try TemporaryFolder.text(path) == #"{"left":{"position":"ajar"}}"#)
    #expect((damaged.exitStatus, JournalError.inUse(path).exitStatus) == (.badData, .unavailable))
  }

  @Test("that cannot be opened is not taken for none")
  func unavailable() throws {
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path)
    let loops = SystemError("open", path, code: ELOOP)
    #expect(throws: loops) { try open() }
    #expect(throws: loops) { try FileJournal.check(path) }
  }

  @Test("is not held up by what a crash left half written")
  func leftover() throws {
    try folder.write("journal.json.\(getpid()).new", "{")
    let reports = try Mailbox<JournalReport>()
    let journal = try open { reports.post($0) }
    journal.commit(Journal(entries: [left: .init(position: .open)]), 1)
    #expect(next(reports) == .committed(1))
    #expect(try TemporaryFolder.text(path) == "{\"left\":{\"position\":\"open\"}}\n")
  }
}
