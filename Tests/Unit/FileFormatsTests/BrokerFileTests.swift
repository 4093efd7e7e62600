import Glibc
import SystemIO
import TestSupport
import Testing

@testable import FileFormats

@Suite("What a broker has to read", .enabled(if: geteuid() == 0, "needs root, who gives files away"))
struct BrokerFileTests {
  private let folder = try! TemporaryFolder()

  private func obstacle() throws -> BrokerFile.Obstacle? {
    let text = """
      # user root
      listener 1 localhost
      cafile \(folder.path)/a b/ca.pem
      keyfile \(folder.path)/broker.key
      persistence_location \(folder.path)/data/
      user nobody

      """
    return try BrokerFile(reading: folder.write("mosquitto.conf", text)).obstacle
  }

  @Test("the file that its user may not read is named, with what lets them")
  func obstacles() throws {
    let path = folder.path
    try folder.write("a b/ca.pem", "", mode: 0o644)
    try folder.write("broker.key", "")
    mkdir("\(path)/data", 0o700)
    // The folder is its maker's alone.
    #expect(try obstacle()?.path == path)
    #expect(try obstacle()?.remedy == "chmod o+x \(path)")
    chmod(path, 0o711)
    #expect(
      try obstacle()?.description
        == "the broker runs as nobody, who may not enter \(path)/a b, and so cannot read \(path)/a b/ca.pem")
    #expect(try obstacle()?.remedy == "chmod o+x '\(path)/a b'")
    chmod("\(path)/a b", 0o711)
    #expect(try obstacle() == .init(user: "nobody", file: "\(path)/broker.key", path: "\(path)/broker.key"))
    #expect(try obstacle()?.description == "the broker runs as nobody, who may not read \(path)/broker.key")
    #expect(try obstacle()?.remedy == "chown nobody \(path)/broker.key")
    chown("\(path)/broker.key", 65534, gid_t.max)
    #expect(try obstacle()?.path == "\(path)/data")
    chown("\(path)/data", 65534, gid_t.max)
    #expect(try obstacle() == nil)
  }
}
