import Glibc
import SystemIO
import Testing

@Suite("What a user may do with files", .enabled(if: geteuid() == 0, "needs root, who gives files away"))
struct FileUserTests {
  private let folder: String
  private let nobody: FileUser

  init() throws {
    var template = Array("/tmp/stepctl-test.XXXXXX".utf8CString)
    let made = try #require(mkdtemp(&template))
    folder = String(cString: made)
    nobody = try #require(FileUser(named: "nobody"))
    mkdir("\(folder)/in", 0o755)
    try Files.create("\(folder)/in/file", with: [], mode: 0o644)
    chmod("\(folder)/in", 0o755)
    chmod(folder, 0o755)
  }

  private var file: String { "\(folder)/in/file" }

  @Test("the first folder that they may not enter is named, or the file")
  func obstacles() {
    defer { _ = try? StagingFolder.remove(folder) }
    #expect(nobody.obstacle(to: file, for: .read) == nil)
    chmod(file, 0o600)
    #expect(nobody.obstacle(to: file, for: .read) == file)
    chmod("\(folder)/in", 0o754)
    #expect(nobody.obstacle(to: file, for: .read) == "\(folder)/in")
    chmod(folder, 0o700)
    #expect(nobody.obstacle(to: file, for: .read) == folder)
    chmod(folder, 0o711)
    chmod("\(folder)/in", 0o711)
    // The owner's bits count for the owner, though others have more.
    chown(file, 65534, gid_t.max)
    chmod(file, 0o044)
    #expect(nobody.obstacle(to: file, for: .read) == file)
    chmod(file, 0o400)
    #expect(nobody.obstacle(to: file, for: .read) == nil)
  }

  @Test("a group of theirs counts, and a folder that they are to fill has to be theirs to write")
  func groups() {
    defer { _ = try? StagingFolder.remove(folder) }
    chmod("\(folder)/in", 0o750)
    #expect(nobody.obstacle(to: file, for: .read) == "\(folder)/in")
    chown("\(folder)/in", uid_t.max, nobody.group)
    #expect(nobody.obstacle(to: file, for: .read) == nil)
    #expect(nobody.obstacle(to: "\(folder)/in/", for: .fill) == "\(folder)/in")
    chmod("\(folder)/in", 0o770)
    #expect(nobody.obstacle(to: "\(folder)/in/", for: .fill) == nil)
  }

  @Test("root may do all, and nobody can tell what is not there")
  func unknown() {
    defer { _ = try? StagingFolder.remove(folder) }
    chmod(folder, 0o000)
    #expect(FileUser(named: "root")?.obstacle(to: file, for: .read) == nil)
    #expect(nobody.obstacle(to: "\(folder)/none", for: .read) == nil)
    #expect(FileUser(named: "stepctl-no-such-user") == nil)
  }
}
