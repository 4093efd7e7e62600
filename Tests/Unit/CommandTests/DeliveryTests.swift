import CommandParts
import Foundation
import SystemIO
import TestSupport
import Testing

@Suite("A result that is written where the user says") struct DeliveryTests {
  let folder: String
  private let temporary: TemporaryFolder

  init() throws {
    temporary = try TemporaryFolder()
    folder = temporary.path
  }

  func mode(_ path: String) throws -> Int {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as! Int
  }

  @Test("a device or a pipe is written into, and not replaced by a file")
  func devices() throws {
    let pipe = folder + "/pipe"
    #expect(mkfifo(pipe, 0o600) == 0)
    // A pipe without a reader would be waited for.
    let reader = try Descriptor.open(pipe, O_RDONLY | O_NONBLOCK)
    try Files.deliver(Array("one".utf8), to: pipe, mode: 0o644)
    let one = try Files.readAll(reader, pipe)
    #expect(one == Array("one".utf8))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["pipe"])

    // Whose target no user may replace. `/dev/stdout` is such a link.
    let link = folder + "/link"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "pipe")
    try Files.deliver(Array("two".utf8), to: link, mode: 0o644)
    let two = try Files.readAll(reader, pipe)
    #expect(two == Array("two".utf8))
  }

  @Test("a result has its mode; behind a link, the file keeps its own")
  func deliver() throws {
    let (path, link) = (folder + "/file", folder + "/link")
    try Files.create(path, with: "one".utf8, mode: 0o666)
    try Files.deliver(Array("two".utf8), to: path, mode: 0o600)
    #expect(try mode(path) == 0o600)
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "file")
    try Files.deliver(Array("three".utf8), to: link, mode: 0o644)
    #expect(try Files.read(path) == Array("three".utf8))
    #expect(try mode(path) == 0o600)
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "file")
  }
}
