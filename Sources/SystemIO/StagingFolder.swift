package import Glibc

/// A folder in which files are prepared before they move to their places. It is removed with its content at the end of
/// its owner's lifetime.
package struct StagingFolder: ~Copyable {
  package let path: String
  /// Set while removing the folder would lose something: then the folder stays for people to inspect.
  package var isToStay = false

  /// Creates the folder (mode 0700). EEXIST when it exists, so that only one of two runs begins.
  package init(_ path: String) throws(SystemError) {
    _ = try check("create the folder", path) { mkdir(path, 0o700) }
    self.path = path
  }

  deinit {
    // After `become` there is nothing to remove.
    guard !isToStay, Files.exists(path) else { return }
    try? Self.remove(path)
    // Otherwise a power cut could bring the folder back, as the mark of an interrupted run.
    try? Files.synchronizeFolder(of: path)
  }

  /// Creates a file in the folder or in one of its subfolders, and returns when the content is on the medium.
  package func write(_ file: NewFile) throws(SystemError) {
    try Files.create("\(path)/\(file.name)", with: file.content, mode: file.mode, isNamed: false)
  }

  /// - Parameter mode: the permission bits, regardless of the umask.
  package func createFolder(_ name: String, mode: mode_t) throws(SystemError) {
    let path = "\(path)/\(name)"
    _ = try check("create the folder", path) { mkdir(path, 0o700) }
    _ = try check("set the mode of", path) { chmod(path, mode) }
  }

  /// Moves something out of the folder to its place, which must be free.
  package func move(_ name: String, to destination: String) throws(SystemError) {
    _ = try check("create", destination) { rename("\(path)/\(name)", destination) }
  }

  /// Moves something from its place into the folder; it is removed with the folder.
  package func take(_ source: String, as name: String) throws(SystemError) {
    _ = try check("replace", source) { rename(source, "\(path)/\(name)") }
  }

  /// Moves the whole folder to its place, which must be free or an empty folder.
  package func become(_ destination: String) throws(SystemError) {
    _ = try check("create", destination) { rename(path, destination) }
    try Files.synchronizeFolder(of: destination)
  }

  /// Waits until the entries of the folder and of all its subfolders are on the medium.
  package func synchronize() throws(SystemError) { try Self.synchronizeAll(path) }

  private static func synchronizeAll(_ folder: String) throws(SystemError) {
    for name in try Files.names(in: folder) where Files.isFolderItself("\(folder)/\(name)") {
      try synchronizeAll("\(folder)/\(name)")
    }
    try synchronize(folder)
  }

  /// Moves a folder to a free place.
  package static func move(_ source: String, to destination: String) throws(SystemError) {
    _ = try check("move", source) { rename(source, destination) }
    try Files.synchronizeFolder(of: destination)
  }

  /// Waits until the entries of a folder are on the medium.
  package static func synchronize(_ folder: String) throws(SystemError) {
    try Descriptor.open(folder, O_RDONLY | O_DIRECTORY).synchronize(folder)
  }

  /// Removes a file, or a folder with its content. Links are removed and never followed, even if one appears meanwhile.
  /// Does not wait for the medium.
  package static func remove(_ path: String) throws(SystemError) { try remove(path, in: AT_FDCWD, path) }

  /// - Parameters:
  ///   - folder: the descriptor of the folder that contains the name.
  ///   - path: for errors.
  private static func remove(_ name: String, in folder: Int32, _ path: String) throws(SystemError) {
    // Linux says EISDIR where POSIX has EPERM (unlink(2)).
    if unlinkat(folder, name, 0) == 0 || errno == ENOENT { return }
    guard errno == EISDIR else { throw SystemError("remove", path) }
    let inner = Descriptor(
      adopting: try check("open", path) { openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) })
    for name in try Files.names(in: inner, path) { try remove(name, in: inner.number, "\(path)/\(name)") }
    _ = try check("remove", path) { unlinkat(folder, name, AT_REMOVEDIR) }
  }
}

/// A file to be written.
package struct NewFile {
  /// The path from the folder to which it belongs.
  package let name: String
  package let content: [UInt8]
  /// Whether only its owner may read it (mode 0600), or everyone (0644).
  package let isPrivate: Bool

  package init(_ name: String, _ content: [UInt8], isPrivate: Bool = false) {
    self.name = name
    self.content = content
    self.isPrivate = isPrivate
  }

  package init(_ name: String, _ text: String, isPrivate: Bool = false) {
    self.init(name, Array(text.utf8), isPrivate: isPrivate)
  }

  package var mode: mode_t { isPrivate ? 0o600 : 0o644 }
}
