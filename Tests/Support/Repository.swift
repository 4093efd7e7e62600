package import Encoding
import SystemIO

/// The files of the project, found from this one.
package enum Repository {
  /// The project's top folder.
  package static let root = String(
    #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(separator: "/"))

  /// The path of a file below `Tests/Fixtures`.
  package static func fixture(_ name: String) -> String { "\(root)/Tests/Fixtures/\(name)" }

  package static func bytes(_ path: String) throws -> [UInt8] {
    try Files.read(path.hasPrefix("/") ? path : "\(root)/\(path)", limit: 64 << 20)
  }

  package static func text(_ path: String) throws -> String { String(decoding: try bytes(path), as: UTF8.self) }

  package static func json(_ path: String) throws -> JSON { try JSON(parsing: bytes(path), maximumDepth: 32) }

  /// The names in a folder, without hidden ones, sorted.
  package static func names(in folder: String) throws -> [String] {
    try Files.names(in: folder.hasPrefix("/") ? folder : "\(root)/\(folder)").filter { !$0.hasPrefix(".") }.sorted()
  }
}
