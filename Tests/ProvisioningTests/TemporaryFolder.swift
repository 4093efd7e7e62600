import FoundationEssentials
import Glibc
import SystemIO

/// A new folder, gone with its owner.
final class TemporaryFolder {
  let path: String

  init() throws {
    var template = Array("/tmp/stepctl-provisioning.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw SystemError("create a folder in", "/tmp") }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Every file and folder below, as paths from here, with its permission bits: `tls/ca.pem 644`.
  func listing(_ folder: String = "") throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: "\(path)/\(folder)").sorted().map {
      "\($0) \(String(try TemporaryFolder.mode("\(path)/\(folder)/\($0)"), radix: 8))"
    }
  }

  static func mode(_ path: String) throws -> mode_t {
    var status = stat()
    _ = try check("stat", path) { stat(path, &status) }
    return status.st_mode & 0o7777
  }

  static func text(_ path: String) throws -> String { String(decoding: try Files.read(path), as: UTF8.self) }
}
