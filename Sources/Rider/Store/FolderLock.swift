import Glibc
import HTTP
import SystemIO

/// An exclusive flock(2), whose wait a signal or a deadline can end. Two programs that change the same files at once
/// would otherwise take each other's half-made files for the rests of an interrupted run.
final class FolderLock: Sendable {
  private let file: Descriptor

  /// Locks a folder itself, so that no file is needed for it. Nobody holds this lock while a person is asked, or while
  /// a server answers.
  convenience init(_ folder: String) throws {
    try Files.createFolder(folder, mode: 0o700)
    try self.init(folder, O_RDONLY | O_DIRECTORY, until: .now + .seconds(30), nil)
  }

  /// - Parameter flags: how the path is opened.
  init(_ path: String, _ flags: Int32, until deadline: Instant, _ interruption: Interruption?) throws {
    file = try Descriptor.open(path, flags, mode: 0o600)
    if file.lock() { return }
    let taken = try Mailbox<Bool>()
    // After a deadline the thread keeps waiting, and releases the lock when it gets it.
    try DetachedThread.start { [self] in
      taken.post(flock(file.number, LOCK_EX) == 0)
    }
    let ready = try waitReadable([taken.descriptor, interruption?.number ?? -1], until: deadline)
    if ready[1] { throw FleetError.http(.interrupted) }
    guard ready[0], taken.take() == true else { throw SystemError("lock", path, code: EWOULDBLOCK) }
  }

  /// Does something while the folder is locked.
  static func during<Result>(_ folder: String, _ body: () throws -> Result) throws -> Result {
    let lock = try FolderLock(folder)
    defer { withExtendedLifetime(lock) {} }
    return try body()
  }
}
