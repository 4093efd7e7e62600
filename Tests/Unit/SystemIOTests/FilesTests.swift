import Foundation
import SystemIO
import Testing

@Suite("Files") final class FilesTests {
  let folder = FileManager.default.temporaryDirectory.appending(path: "stepctl-\(UUID().uuidString)").path

  init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true) }
  deinit { try? FileManager.default.removeItem(atPath: folder) }

  func mode(_ path: String) throws -> Int {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as! Int
  }

  @Test("a replaced file has the new content and the mode that was asked for, whatever the umask")
  func replace() throws {
    let path = folder + "/file"
    // Of which the usual umask would take something; setting another one would be felt by all that runs beside this.
    try Files.replace(path, with: "one".utf8, mode: 0o666)
    #expect(try mode(path) == 0o666)
    try Files.replace(path, with: "two".utf8, mode: 0o600)
    #expect(try mode(path) == 0o600)
    #expect(try Files.read(path) == Array("two".utf8))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["file"])
  }

  @Test("a rewritten file keeps its mode, and a link to it stays a link")
  func rewrite() throws {
    let path = folder + "/file"
    try Files.create(path, with: "one".utf8, mode: 0o640)
    try FileManager.default.createSymbolicLink(atPath: folder + "/link", withDestinationPath: "file")
    try Files.rewrite(folder + "/link", with: "two".utf8)
    #expect(try Files.read(path) == Array("two".utf8))
    #expect(try mode(path) == 0o640)
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: folder + "/link") == "file")
    let none = folder + "/none"
    #expect(throws: SystemError("open", none, code: ENOENT)) { try Files.rewrite(none, with: []) }
  }

  @Test("a pipe is never replaced by a file")
  func pipes() throws {
    let pipe = folder + "/pipe"
    #expect(mkfifo(pipe, 0o600) == 0)
    #expect(throws: SystemError("replace", "\(pipe), which is not a regular file", code: EINVAL)) {
      try Files.replace(pipe, with: "one".utf8, mode: 0o600)
    }
  }

  @Test("an edited file is the one that was read, or none")
  func edit() throws {
    let (mine, others) = (folder + "/mine", folder + "/others")
    for place in [mine, others] {
      try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
      try Files.create(place + "/file", with: place.utf8, mode: 0o640)
    }
    let path = folder + "/link/file"
    try FileManager.default.createSymbolicLink(atPath: folder + "/link", withDestinationPath: "mine")
    #expect(try !Files.edit(path) { $0 })
    #expect(try Files.edit(path) { $0 + [0x21] })
    #expect(try Files.read(mine + "/file") == Array("\(mine)!".utf8))
    #expect(try mode(mine + "/file") == 0o640)
    // Whoever may change the link does so between the reading and the writing.
    #expect(throws: SystemError("replace", path, code: ESTALE)) {
      try Files.edit(path) { content in
        unlink(folder + "/link")
        symlink("others", folder + "/link")
        return content + [0x21]
      }
    }
    #expect(try Files.read(mine + "/file") == Array("\(mine)!".utf8))
    #expect(try Files.read(others + "/file") == Array(others.utf8))
    for place in [mine, others] { #expect(try FileManager.default.contentsOfDirectory(atPath: place) == ["file"]) }
  }

  @Test(
    "an error names the file that was to be replaced, and not the one beside it", arguments: ["none/file", "no/x/y"])
  func subject(name: String) throws {
    let path = folder + "/" + name
    let error = #expect(throws: SystemError.self) { try Files.replace(path, with: [1], mode: 0o600) }
    #expect(error == SystemError("write", path, code: ENOENT))
    let long = folder + "/" + String(repeating: "n", count: 255)
    #expect(throws: SystemError("write", long, code: ENAMETOOLONG)) { try Files.replace(long, with: [1], mode: 0o600) }
  }

  @Test("a file that cannot be replaced stays as it was, and nothing is left beside it")
  func replaceFails() throws {
    let path = folder + "/folder"
    try FileManager.default.createDirectory(atPath: path + "/full", withIntermediateDirectories: true)
    #expect(throws: SystemError("replace", path, code: EISDIR)) { try Files.replace(path, with: [1], mode: 0o600) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["folder"])
  }

  @Test("what is too large is not read to its end")
  func limit() throws {
    let path = folder + "/large"
    try Files.create(path, with: [UInt8](repeating: 0, count: 100), mode: 0o600)
    #expect(throws: SystemError("read", path, code: EFBIG)) { try Files.read(path, limit: 99) }
    #expect(try Files.read(path, limit: 100).count == 100)
    // A device has no end, and a folder no content.
    #expect(throws: SystemError("read", "/dev/zero", code: EFBIG)) { try Files.read("/dev/zero", limit: 1000) }
    #expect(throws: SystemError("read", folder, code: EISDIR)) { try Files.read(folder) }
  }

  @Test("a file that exists is not created")
  func create() throws {
    let path = folder + "/file"
    try Files.create(path, with: [1], mode: 0o600)
    #expect(throws: SystemError("open", path, code: EEXIST)) { try Files.create(path, with: [2], mode: 0o600) }
    #expect(try Files.read(path) == [1])
  }

  @Test("names what a folder holds, and says why where it cannot")
  func names() throws {
    try Files.create(folder + "/.file", with: [], mode: 0o600)
    try Files.createFolder(folder + "/folder", mode: 0o700)
    #expect(try Files.names(in: folder).sorted() == [".file", "folder"])
    #expect(throws: SystemError("open", folder + "/none", code: ENOENT)) { try Files.names(in: folder + "/none") }
  }

  @Test("says whether others may read a file")
  func exposure() throws {
    let path = folder + "/key"
    try Files.create(path, with: [1], mode: 0o600)
    #expect(try !Files.isReadableByOthers(path))
    chmod(path, 0o640)
    #expect(try Files.isReadableByOthers(path))
    #expect(throws: SystemError.self) { try Files.isReadableByOthers(folder + "/missing") }
  }

  @Test("paths are seen from the folder of the file that names them")
  func paths() {
    #expect(Files.parent(of: "a/b") == "a")
    #expect(Files.parent(of: "a") == ".")
    #expect(Files.parent(of: "/a") == "/")
    #expect(Files.resolve("/x", in: "a") == "/x")
    #expect(Files.resolve("x", in: "a") == "a/x")
  }

  @Test("an error says what, where and why")
  func errors() {
    #expect(SystemError("open", "/x", code: ENOENT).description == "cannot open /x: No such file or directory")
    #expect(SystemError("poll", code: ENOMEM).description == "cannot poll: Cannot allocate memory")
  }
}
