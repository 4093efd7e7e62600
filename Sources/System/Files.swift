package import Glibc

/// Whole files: read with a limit, written so that a crash leaves the old content or the new, never a part.
package enum Files {
  /// Reads a whole file.
  ///
  /// - Parameter limit: bytes; a larger file throws EFBIG and is not read any further.
  package static func read(_ path: String, limit: Int = 1 << 20) throws(SystemError) -> [UInt8] {
    let file = try Descriptor.open(path, O_RDONLY)
    return try readAll(file, path, limit: limit)
  }

  /// Reads a whole regular file. Anything else that a path can name may keep a reader waiting for ever: EINVAL.
  package static func readRegular(_ path: String, limit: Int = 1 << 20) throws(SystemError) -> [UInt8] {
    try readAll(.openRegular(path), path, limit: limit)
  }

  /// Reads what is left of an open file.
  package static func readAll(
    _ file: borrowing Descriptor, _ subject: String, limit: Int = 1 << 20
  ) throws(SystemError) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16384)
    while true {
      let number = file.number
      let count = try check("read", subject) { Glibc.read(number, &chunk, chunk.count) }
      if count == 0 { return bytes }
      bytes += chunk[..<count]
      if bytes.count > limit { throw SystemError("read", subject, code: EFBIG) }
    }
  }

  /// Replaces a file at once: written beside it, synced, renamed, and the folder synced.
  ///
  /// - Parameters:
  ///   - mode: the permission bits of the file, whatever the umask.
  ///   - isDurable: false for what is worth nothing after the computer has stopped, and need not be synced.
  package static func replace(
    _ path: String, with bytes: some Sequence<UInt8>, mode: mode_t, isDurable: Bool = true
  ) throws(SystemError) {
    _ = try replace(
      path, in: folder(of: path, for: path), as: name(of: path), with: bytes, mode: mode, isDurable: isDurable)
  }

  /// Replaces a file as `replace(_:with:mode:isDurable:)` does, in a folder that may be another user's. The new file has
  /// the owner of the old one, or else of its folder: what `sudo` writes there is still its user's or its service's.
  package static func replaceForOwner(
    _ path: String, with bytes: some Sequence<UInt8>, mode: mode_t
  ) throws(SystemError) {
    _ = try replace(
      path, in: folder(of: path, for: path), as: name(of: path), with: bytes, mode: mode, owner: owner(of: path))
  }

  /// Replaces a file as `replace(_:with:mode:isDurable:)` does, and gives it the owner of another file: what `sudo`
  /// writes beside a user's file is the user's.
  package static func replace(
    _ path: String, with bytes: some Sequence<UInt8>, mode: mode_t, ownedAs other: String
  ) throws(SystemError) {
    var status = stat()
    _ = try check("open", other) { stat(other, &status) }
    _ = try replace(
      path, in: folder(of: path, for: path), as: name(of: path), with: bytes, mode: mode,
      owner: (status.st_uid, status.st_gid))
  }

  /// Replaces a file that one program at a time uses, under an exclusive flock(2).
  ///
  /// - Returns: the new file. It was locked before it had its name, so that nobody finds it unlocked. It is owned as
  ///   the one before, or else as its folder: what `sudo` writes for a daemon is the daemon's.
  package static func replaceLocked(
    _ path: String, with bytes: some Sequence<UInt8>, mode: mode_t
  ) throws(SystemError) -> Descriptor {
    try replace(
      path, in: folder(of: path, for: path), as: name(of: path), with: bytes, mode: mode, owner: owner(of: path),
      isLocked: true)
  }

  /// The owner of a file or, where there is no such file, of its folder. Nil unless this process is root: nobody else
  /// can give files away, and a service may be ended for trying (systemd.exec(5), SystemCallFilter).
  package static func owner(of path: String) -> (user: uid_t, group: gid_t)? {
    var status = stat()
    guard geteuid() == 0, stat(path, &status) == 0 || stat(parent(of: path), &status) == 0 else { return nil }
    return (status.st_uid, status.st_gid)
  }

  /// Replaces the content of a file that there is, at once: mode and owner stay (what `sudo` writes is still its
  /// user's), and a link to it stays a link.
  package static func rewrite(_ path: String, with bytes: some Sequence<UInt8>) throws(SystemError) {
    var status = stat()
    _ = try check("open", path) { stat(path, &status) }
    try rewrite(path, known: status, with: bytes)
  }

  /// Reads a file, and rewrites it with what `change` makes of its content; not where that is the same.
  ///
  /// The file that is replaced is the one that was read. Whoever may move folders and links on the way to it, as the
  /// user whose file root changes, cannot have the change put anywhere else.
  ///
  /// - Returns: whether it was rewritten.
  /// - Throws: `SystemError`, and what `change` throws.
  @discardableResult
  package static func edit(_ path: String, _ change: ([UInt8]) throws -> [UInt8]) throws -> Bool {
    // Open until the end, so that no other file gets its number.
    let file = try Descriptor.open(path, O_RDONLY)
    let number = file.number
    var status = stat()
    _ = try check("open", path) { fstat(number, &status) }
    let old = try readAll(file, path)
    let new = try change(old)
    guard new != old else { return false }
    try rewrite(path, known: status, with: new)
    return true
  }

  private static func rewrite(
    _ path: String, known: stat, with bytes: some Sequence<UInt8>
  ) throws(SystemError) {
    guard let resolved = realpath(path, nil) else { throw SystemError("open", path) }
    defer { free(resolved) }
    let target = String(cString: resolved)
    let folder = try folder(of: target, for: path)
    let (number, name) = (folder.number, name(of: target))
    var found = stat()
    _ = try check("open", path) { fstatat(number, name, &found, AT_SYMLINK_NOFOLLOW) }
    guard found.st_dev == known.st_dev, found.st_ino == known.st_ino else {
      throw SystemError("replace", path, code: ESTALE)
    }
    _ = try replace(
      path, in: folder, as: name, with: bytes, mode: known.st_mode & 0o7777, owner: (known.st_uid, known.st_gid))
  }

  /// - Parameters:
  ///   - path: for errors, which name what the user knows.
  ///   - owner: who is to own the file, if this user may give it away; nil for this process's user.
  private static func replace(
    _ path: String, in folder: borrowing Descriptor, as name: String, with bytes: some Sequence<UInt8>, mode: mode_t,
    owner: (user: uid_t, group: gid_t)? = nil, isLocked: Bool = false, isDurable: Bool = true
  ) throws(SystemError) -> Descriptor {
    let temporary = "\(name).\(getpid()).new"
    let place = folder.number
    unlinkat(place, temporary, 0)
    let file = Descriptor(
      adopting: try check("write", path) {
        openat(place, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
      })
    do throws(SystemError) {
      let number = file.number
      if isLocked, !file.lock() { throw SystemError("lock", path) }
      // As far as this user may, and before the mode, of which it clears bits (fchown(2)).
      if let owner { _ = fchown(number, owner.user, owner.group) }
      _ = try check("set the mode of", path) { fchmod(number, mode) }
      try file.write(bytes, path)
      if isDurable { try file.synchronize(path) }
      _ = try check("replace", path) { renameat(place, temporary, place, name) }
    } catch {
      unlinkat(place, temporary, 0)
      throw error
    }
    if isDurable { try folder.synchronize(path) }
    return file
  }

  private static func folder(of path: String, for subject: String) throws(SystemError) -> Descriptor {
    let parent = parent(of: path)
    return Descriptor(
      adopting: try check("write", subject) { Glibc.open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
  }

  /// What a symbolic link says, which need not exist; nil where there is none that this user may read.
  package static func target(ofLink path: String) -> String? {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { target in
      guard let text = target.baseAddress else { return nil }
      let count = readlink(path, text, target.count)
      return count > 0 ? String(decoding: UnsafeRawBufferPointer(target).prefix(count), as: UTF8.self) : nil
    }
  }

  /// What a path ends with.
  package static func name(of path: String) -> String {
    path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
  }

  /// Creates a file that must not exist yet (EEXIST).
  package static func create(_ path: String, with bytes: some Sequence<UInt8>, mode: mode_t) throws(SystemError) {
    let file = try Descriptor.open(path, O_WRONLY | O_CREAT | O_EXCL, mode: mode)
    let number = file.number
    do throws(SystemError) {
      _ = try check("set the mode of", path) { fchmod(number, mode) }
      try file.write(bytes, path)
      try file.synchronize(path)
    } catch {
      // Half a file would be in the way of the next attempt.
      unlink(path)
      throw error
    }
  }

  /// Creates a folder, and those above it, with `mode` (for those that it makes).
  package static func createFolder(_ path: String, mode: mode_t) throws(SystemError) {
    if isFolder(path) { return }
    let above = parent(of: path)
    if above != path, !exists(above) { try createFolder(above, mode: mode) }
    if mkdir(path, mode) == -1, errno != EEXIST { throw SystemError("create the folder", path) }
  }

  /// The same, owned as the folder above it.
  package static func createFolderForOwner(_ path: String, mode: mode_t) throws(SystemError) {
    if isFolder(path) { return }
    let owner = owner(of: path)
    try createFolder(path, mode: mode)
    guard let owner else { return }
    // What somebody puts in its place meanwhile is not given away: a link is not followed.
    let folder = try Descriptor.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    _ = fchown(folder.number, owner.user, owner.group)
  }

  /// Opens a file to append to it, or makes one that is owned as its folder.
  package static func openToAppendForOwner(_ path: String, mode: mode_t) throws(SystemError) -> Descriptor {
    let owner = owner(of: path)
    do throws(SystemError) {
      let new = try Descriptor.open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND, mode: mode)
      if let owner { _ = fchown(new.number, owner.user, owner.group) }
      return new
    } catch  where error.code == EEXIST {
      return try Descriptor.open(path, O_RDWR | O_APPEND)
    }
  }

  /// Whether there is something of this name. Where this user may not look, there may be: whoever opens it is told.
  package static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 || errno == EACCES }

  package static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// What a folder holds, in no order.
  package static func names(in folder: String) throws(SystemError) -> [String] {
    try names(in: .open(folder, O_RDONLY | O_DIRECTORY), folder)
  }

  /// What an open folder holds, in no order. It is read once.
  package static func names(in folder: borrowing Descriptor, _ subject: String) throws(SystemError) -> [String] {
    let number = folder.number
    // A stream closes the descriptor that it is given.
    let own = try check("open", subject) { fcntl(number, F_DUPFD_CLOEXEC, 3) }
    guard let stream = fdopendir(own) else {
      let error = SystemError("open", subject)
      close(own)
      throw error
    }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  /// The folder that a path lies in: `.` for a bare name.
  package static func parent(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// A path as seen from a file's folder: an absolute one as it is, a relative one below `folder`.
  ///
  /// `..` is worked out where the folder is no link: behind a link it leads elsewhere.
  package static func resolve(_ path: String, in folder: String) -> String {
    if path.hasPrefix("/") { return path }
    var (rest, above) = (path[...], folder[...])
    while rest == ".." || rest.hasPrefix("../"), let slash = above.lastIndex(of: "/"), slash != above.startIndex,
      isFolderItself(String(above))
    {
      (rest, above) = (rest.dropFirst(3), above[..<slash])
    }
    return rest.isEmpty ? String(above) : "\(above)/\(rest)"
  }

  /// Whether it is a folder by its own name: no link to one, and not `.` or `..`.
  private static func isFolderItself(_ path: String) -> Bool {
    var status = stat()
    return ![".", ".."].contains(name(of: path)) && lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Whether anyone but the owner may read a file (mode bits 077).
  package static func isReadableByOthers(_ path: String) throws(SystemError) -> Bool {
    var status = stat()
    _ = try check("open", path) { stat(path, &status) }
    return status.st_mode & 0o077 != 0
  }
}
