import Domain
import SystemIO

/// What mosquitto.conf(5) says about files: enough to tell whether a broker that root starts can read them. mosquitto 2
/// gives up root's rights before it reads any of them but this one.
package struct BrokerFile {
  /// Why the broker cannot start.
  package struct Obstacle: Equatable, Sendable {
    /// The user that the broker becomes.
    package let user: String
    /// The file that it needs.
    package let file: String
    /// What keeps it from the file: a folder on the way, or the file itself.
    package let path: String

    package var description: String {
      path == file
        ? "the broker runs as \(user), who may not read \(file)"
        : "the broker runs as \(user), who may not enter \(path), and so cannot read \(file)"
    }

    /// What root types.
    package var remedy: String {
      path == file ? shellCommand("chown", user, file) : shellCommand("chmod", "o+x", path)
    }
  }

  private let user: String
  private var files: [(path: String, use: FileUser.Use)] = []

  package init(reading path: String) throws { self.init(parsing: try Files.readRegular(path)) }

  init(parsing bytes: [UInt8]) {
    var user = "mosquitto"
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      let words = String(decoding: line, as: UTF8.self).split(separator: " ", maxSplits: 1)
      guard words.count == 2 else { continue }
      switch words[0] {
      case "user": user = String(words[1])
      case "cafile", "certfile", "keyfile", "crlfile", "acl_file", "plugin", "plugin_opt_removed":
        files.append((String(words[1]), .read))
      case "persistence_location": files.append((String(words[1]), .fill))
      default: break
      }
    }
    self.user = user
  }

  /// Why the broker cannot start, as far as the modes of the files tell.
  package var obstacle: Obstacle? {
    guard let user = FileUser(named: user) else { return nil }
    return files.lazy.compactMap { file in
      user.obstacle(to: file.path, for: file.use).map { Obstacle(user: user.name, file: file.path, path: $0) }
    }.first
  }
}
