import Glibc
import SystemIO
import TestSupport
import Testing

/// A file system that is soon full, mounted while its owner lives.
final class FullDisk {
  /// Whether this process may mount one; not every root may, in a container.
  static let canBeMounted: Bool = {
    guard geteuid() == 0, let folder = try? TemporaryFolder() else { return false }
    return (try? FullDisk(in: folder)) != nil
  }()

  let path: String
  private let folder: TemporaryFolder

  init(in folder: TemporaryFolder) throws {
    path = "\(folder.path)/disk"
    self.folder = folder
    try Files.createFolder(path, mode: 0o755)
    let path = path
    _ = try check("mount", path) { mount("tmpfs", path, "tmpfs", 0, "size=40k,mode=755") }
  }

  deinit { umount2(path, Int32(MNT_DETACH)) }

  func enlarge() throws {
    let path = path
    _ = try check("mount", path) { mount("tmpfs", path, "tmpfs", UInt(MS_REMOUNT), "size=200k") }
  }

  /// Leaves no room for a single byte.
  func fill() throws {
    let file = try Descriptor.open("\(path)/filling", O_WRONLY | O_CREAT, mode: 0o600)
    var error: SystemError?
    while error == nil {
      do throws(SystemError) { try file.write([UInt8](repeating: 0, count: 4096)) } catch let failure {
        error = failure
      }
    }
    try #require(error?.code == ENOSPC)
  }
}
