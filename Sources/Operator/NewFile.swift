import Glibc

/// A file that is to be written.
struct NewFile {
  /// The path from the folder that it belongs to.
  let name: String
  let content: [UInt8]
  /// Whether only its owner may read it (mode 0600), or everyone (0644).
  let isPrivate: Bool

  init(_ name: String, _ content: [UInt8], isPrivate: Bool = false) {
    self.name = name
    self.content = content
    self.isPrivate = isPrivate
  }

  init(_ name: String, _ text: String, isPrivate: Bool = false) {
    self.init(name, Array(text.utf8), isPrivate: isPrivate)
  }

  var mode: mode_t { isPrivate ? 0o600 : 0o644 }
}
