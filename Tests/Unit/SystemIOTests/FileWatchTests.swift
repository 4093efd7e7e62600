import Glibc
import SystemIO
import TestSupport
import Testing

@Suite("A watch on a file") struct FileWatchTests {
  private let folder = try! TemporaryFolder()
  private var path: String { folder.path + "/file" }

  private func happens(_ watch: FileWatch) throws -> FileWatch.Event {
    _ = try waitReadable([watch.number], until: .now)
    return try watch.next()
  }

  @Test("tells that it is made, written, replaced and removed, once for all that has happened")
  func life() throws {
    let watch = try FileWatch(path, includingContent: true)
    #expect(try happens(watch) == .none)
    for act in [
      { try Files.create(path, with: "1".utf8, mode: 0o600) }, { try Files.replace(path, with: "2".utf8, mode: 0o600) },
      { try Descriptor.open(path, O_WRONLY).write("3".utf8) }, { unlink(path) },
    ] as [() throws -> Void] {
      try act()
      #expect(try happens(watch) == .changed)
      #expect(try happens(watch) == .none)
    }
  }

  @Test("is silent about other files, also those whose names begin alike, and about content if that is left out")
  func others() throws {
    let watch = try FileWatch(path, includingContent: false)
    for name in ["fil", "file2", "other"] { try folder.write(name) }
    #expect(try happens(watch) == .none)
    try folder.write("file", "1")
    #expect(try happens(watch) == .changed)
    try Descriptor.open(path, O_WRONLY).write("2".utf8)
    #expect(try happens(watch) == .none)
  }

  @Test("tells when the folder goes, or is elsewhere from then on", arguments: ["rmdir", "mv"])
  func gone(command: String) throws {
    let path = folder.path + "/inner/file"
    #expect(throws: SystemError("watch", path, code: ENOENT)) { try FileWatch(path, includingContent: true) }
    mkdir(folder.path + "/inner", 0o700)
    let watch = try FileWatch(path, includingContent: true)
    _ = command == "rmdir" ? rmdir(folder.path + "/inner") : rename(folder.path + "/inner", folder.path + "/moved")
    #expect(try happens(watch) == .folderGone)
  }
}
