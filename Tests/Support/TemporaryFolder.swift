import FoundationEssentials
package import Glibc
import SystemIO

/// A new folder below `/tmp`, removed with all that is in it when its owner goes.
package final class TemporaryFolder: Sendable {
  package let path: String

  package init() throws {
    var template = Array("/tmp/stepctl-test.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw SystemError("create a folder in", "/tmp") }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Writes a file, and makes the folders above it.
  ///
  /// - Returns: the file's path.
  @discardableResult
  package func write(_ name: String, _ text: String = "", mode: mode_t = 0o600) throws -> String {
    let file = "\(path)/\(name)"
    try Files.createFolder(Files.parent(of: file), mode: 0o700)
    try Files.replace(file, with: text.utf8, mode: mode)
    return file
  }

  /// Every file and folder below, as paths from here, with its permission bits: `tls/ca.pem 644`.
  package func listing(_ folder: String = "") throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: "\(path)/\(folder)").sorted().map {
      "\($0) \(String(try TemporaryFolder.mode("\(path)/\(folder)/\($0)"), radix: 8))"
    }
  }

  /// The permission bits of a file.
  package static func mode(_ path: String) throws -> mode_t {
    var status = stat()
    _ = try check("stat", path) { stat(path, &status) }
    return status.st_mode & 0o7777
  }

  /// A file's content.
  package static func text(_ path: String) throws -> String { String(decoding: try Files.read(path), as: UTF8.self) }
}
