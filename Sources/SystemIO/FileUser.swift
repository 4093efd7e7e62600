import CLinux
import Glibc

/// A user of this computer, and what the modes of files and folders let them do.
///
/// Only the kernel knows what an access control list allows (acl(5)), so what has one counts as permitted.
package struct FileUser: Sendable {
  package let name: String
  private let number: uid_t
  private let groups: Set<gid_t>
  /// The user's own group.
  package let group: UInt32

  /// - Returns: nil if there is no such user.
  package init?(named name: String) {
    guard let entry = getpwnam(name)?.pointee else { return nil }
    (self.name, number, group) = (name, entry.pw_uid, entry.pw_gid)
    var count: Int32 = 64
    var groups = [gid_t](repeating: 0, count: Int(count))
    // A user of more groups has the first of them here.
    _ = getgrouplist(name, entry.pw_gid, &groups, &count)
    self.groups = Set(groups.prefix(Int(max(0, min(count, 64)))))
  }

  package enum Use: UInt32, Sendable {
    /// To read a file.
    case read = 0o4
    /// To keep files in a folder.
    case fill = 0o7
  }

  /// What keeps this user from a file or a folder: the first folder on the way that they may not enter, or the file or
  /// folder itself.
  ///
  /// - Returns: nil if nothing does, or if this process cannot see it.
  package func obstacle(to path: String, for use: Use) -> String? {
    guard number != 0, let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    let target = String(cString: resolved)
    var folder = ""
    for name in target.split(separator: "/").dropLast() {
      folder += "/\(name)"
      if !may(0o1, at: folder) { return folder }
    }
    return may(use.rawValue, at: target) ? nil : target
  }

  /// - Parameter rights: bits of `others` in a mode.
  private func may(_ rights: mode_t, at path: String) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0, has_access_list(path) == 0 else { return true }
    let shift: mode_t = status.st_uid == number ? 6 : groups.contains(status.st_gid) ? 3 : 0
    return (status.st_mode >> shift) & rights == rights
  }
}
