package import Domain
import Glibc
package import StepController
import SystemIO

/// The journal in a file, replaced as a whole and synced on a thread of its own: after a crash it is the old one or the
/// new one.
///
/// While a program has it open no other can (flock(2) on a file beside it). That file stays. Where it is there and the
/// journal is not, the journal was lost, and nobody knows where the steps stand.
package final class FileJournal: JournalStore, Sendable {
  /// What the file said at the start.
  package let found: Journal
  private let lock: Descriptor
  private let writer: Worker<(Journal, CommitTicket)>

  /// Opens the journal, or makes one.
  ///
  /// - Parameters:
  ///   - installed: where steps stand that the journal has never heard of.
  ///   - report: called on the journal's thread.
  /// - Throws: `JournalError`, or `SystemError` where the file cannot be read, made or locked.
  package init(
    _ path: String, steps: [StepID], installed: Position, report: @escaping @Sendable (JournalReport) -> Void
  ) throws {
    let wasMade = Files.exists(path + ".lock")
    lock = try Descriptor.open(path + ".lock", O_RDWR | O_CREAT, mode: 0o600)
    guard flock(lock.number, LOCK_EX | LOCK_NB) == 0 else { throw JournalError.inUse(path) }
    let old = try Self.read(path)
    var journal = old ?? Journal()
    let unheard = old == nil && wasMade ? Journal.Entry.lost : Journal.Entry(position: installed)
    for id in steps where journal.entries[id] == nil { journal.entries[id] = unheard }
    if old == nil { try Files.replace(path, with: journal.bytes, mode: 0o600) }
    found = journal
    writer = try Worker { commits in
      var reason: String?
      do throws(SystemError) {
        // The last says all that those before it said.
        try Files.replace(path, with: commits.last!.0.bytes, mode: 0o600)
      } catch {
        reason = error.description
      }
      for (_, ticket) in commits { report(reason.map { .failed(ticket, $0) } ?? .committed(ticket)) }
    }
  }

  package func commit(_ journal: Journal, _ ticket: CommitTicket) { writer.post((journal, ticket)) }

  /// Throws when there is a journal that cannot be read.
  package static func check(_ path: String) throws { _ = try read(path) }

  /// - Returns: nil when there is none. One that cannot be opened or read is not taken for that.
  private static func read(_ path: String) throws -> Journal? {
    let bytes: [UInt8]
    do throws(SystemError) { bytes = try Files.read(path, limit: 65536) } catch {
      if error.code == ENOENT { return nil }
      throw error
    }
    do throws(Journal.Damage) { return try Journal(parsing: bytes) } catch {
      throw JournalError.damaged(path, error.reason)
    }
  }
}

/// Why a journal cannot be used.
package enum JournalError: Failure, Equatable {
  case inUse(String)
  case damaged(String, String)

  package var exitStatus: ExitStatus {
    switch self {
    case .inUse: .unavailable
    case .damaged: .badData
    }
  }

  package var description: String {
    switch self {
    case .inUse(let path): "\(path) is in use by another stepd"
    case .damaged(let path, let reason):
      "\(path) is damaged: \(reason); look where the steps stand, then move the file away"
    }
  }
}
