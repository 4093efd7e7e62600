import FoundationEssentials
import Glibc
import SystemIO

/// A new folder, gone with its owner.
final class TemporaryFolder {
  let path: String

  init() throws {
    var template = Array("/tmp/stepctl-configuration.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw SystemError("create a folder in", "/tmp") }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Writes a file and the folders above it.
  @discardableResult
  func write(_ name: String, _ text: String = "", mode: mode_t = 0o600) throws -> String {
    let file = "\(path)/\(name)"
    try Files.createFolder(Files.parent(of: file), mode: 0o700)
    try Files.replace(file, with: text.utf8, mode: mode)
    return file
  }
}
