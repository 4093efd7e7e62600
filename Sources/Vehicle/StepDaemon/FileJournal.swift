package import Domain
import Glibc
package import StepController
import Synchronization
import SystemIO

/// The journal in a file. A separate thread replaces it as a whole and syncs it, so that after a crash the file is the
/// old journal or the new one.
///
/// Only one program can have the journal open. It holds flock(2) on two files: on a lock file beside the journal, which
/// is never removed, and on the journal itself. So removing one of the two files lets no other program in. If the lock
/// file exists and the journal does not, the journal was lost, and the steps' positions are unknown.
package final class FileJournal: JournalStore, Sendable {
  /// Bytes. The counters of the largest number of tags take less.
  private static let limit = 65536

  /// The file's content at the start.
  package let found: Journal
  private let lock: Descriptor
  /// The current journal file; nil when this program has closed it, although its thread may still run.
  private let current: Shared<OpenFile?>
  private let writer: Worker<(Journal, CommitTicket)>

  /// Opens the journal, or creates one.
  ///
  /// - Parameters:
  ///   - installed: the position of steps that are not in the journal yet.
  ///   - report: called on the journal's thread.
  /// - Throws: `JournalError`, or `SystemError` if the file cannot be read, created or locked.
  package init(
    _ path: String, steps: [StepID], installed: Position, report: @escaping @Sendable (JournalReport) -> Void
  ) throws {
    let wasMade = Files.exists(path + ".lock")
    if !wasMade, !Files.exists(path) {
      Self.begin(
        path, Journal(entries: Dictionary(uniqueKeysWithValues: steps.map { ($0, .init(position: installed)) })))
    }
    lock = try Descriptor.open(path + ".lock", O_RDWR | O_CREAT | O_NONBLOCK, mode: 0o600)
    guard lock.lock() else { throw JournalError.inUse(path) }
    if !wasMade, let owner = Files.owner(of: Files.parent(of: path)) {
      _ = fchown(lock.number, owner.user, owner.group)
    }
    let held = try Self.hold(path)
    Files.removeLeftovers(of: path)
    var journal = try held.map { try Self.read($0.descriptor, path) } ?? Journal()
    let unheard = held == nil && wasMade ? Journal.Entry.lost : Journal.Entry(position: installed)
    for id in steps where journal.entries[id] == nil { journal.entries[id] = unheard }
    found = journal
    let current = Shared<OpenFile?>(try held ?? OpenFile(Files.replaceLocked(path, with: journal.bytes, mode: 0o600)))
    self.current = current
    writer = try Worker { commits in
      var reason: String?
      do throws(SystemError) {
        // The last journal repeats the content of those before it. A worker never gets an empty list.
        let new = OpenFile(try Files.replaceLocked(path, with: commits.last!.0.bytes, mode: 0o600))
        current.value.withLock { if $0 != nil { $0 = new } }
      } catch {
        reason = error.description
      }
      for (_, ticket) in commits { report(reason.map { .failed(ticket, $0) } ?? .committed(ticket)) }
    }
  }

  deinit { current.value.withLock { $0 = nil } }

  package func commit(_ journal: Journal, _ ticket: CommitTicket) { writer.post((journal, ticket)) }

  /// Throws if there is a journal that cannot be read.
  package static func check(_ path: String) throws {
    if let file = try open(path) { _ = try read(file.descriptor, path) }
  }

  /// Writes a first journal before there is a lock file: a power cut between the two must not look as if the journal
  /// was lost. It never replaces a journal, because another program may have made one and may use it already. If this
  /// fails, opening the journal will report the error.
  private static func begin(_ path: String, _ journal: Journal) {
    let new = "\(path).\(getpid()).new"
    defer { unlink(new) }
    guard (try? Files.replaceForOwner(new, with: journal.bytes, mode: 0o600)) != nil, link(new, path) == 0 else {
      return
    }
    try? Files.synchronizeFolder(of: path)
  }

  /// Opens and locks the journal; nil if there is none.
  private static func hold(_ path: String) throws -> OpenFile? {
    while let held = try open(path) {
      let number = held.descriptor.number
      guard held.descriptor.lock() else { throw JournalError.inUse(path) }
      // The program that had the lock may have replaced the file since it was opened.
      var (own, present) = (stat(), stat())
      if fstat(number, &own) == 0, stat(path, &present) == 0, own.st_ino == present.st_ino, own.st_dev == present.st_dev
      {
        return held
      }
    }
    return nil
  }

  /// - Returns: nil if there is none. A journal that cannot be opened is an error.
  private static func open(_ path: String) throws -> OpenFile? {
    do throws(SystemError) { return OpenFile(try .openRegular(path)) } catch {
      switch error.code {
      case ENOENT: return nil
      case EINVAL, EISDIR: throw JournalError.damaged(path, "not a regular file")
      default: throw error
      }
    }
  }

  private static func read(_ file: borrowing Descriptor, _ path: String) throws -> Journal {
    let bytes: [UInt8]
    do throws(SystemError) { bytes = try Files.readAll(file, path, limit: limit) } catch {
      if error.code == EFBIG { throw JournalError.damaged(path, "larger than \(limit) bytes") }
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
      "\(path) is damaged: \(reason); look where the steps are, then move the file to another folder"
    }
  }
}
