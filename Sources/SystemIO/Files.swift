package import Glibc

/// Whole files. Reads have a limit. After a crash, a written file has its old or its new content, never a part.
package enum Files {
  /// Reads a whole file.
  ///
  /// - Parameter limit: bytes. A larger file throws EFBIG and is not read further.
  package static func read(_ path: String, limit: Int = 1 << 20) throws(SystemError) -> [UInt8] {
    let file = try Descriptor.open(path, O_RDONLY)
    return try readAll(file, path, limit: limit)
  }

  /// Reads a whole regular file. Throws EINVAL for anything else, because that might keep a reader waiting forever.
  package static func readRegular(_ path: String, limit: Int = 1 << 20) throws(SystemError) -> [UInt8] {
    try readAll(.openRegular(path), path, limit: limit)
  }

  /// Reads the rest of an open file.
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

  /// Replaces a file atomically: writes a new file beside it, syncs it, renames it, and syncs the folder.
  ///
  /// - Parameters:
  ///   - mode: the file's permission bits, regardless of the umask.
  ///   - isDurable: false for data that is useless after the computer has stopped, so that it need not be synced.
  package static func replace(
    _ path: String, with bytes: some Sequence<UInt8>, mode: mode_t, isDurable: Bool = true
  ) throws(SystemError) {
    _ = try replace(
      path, in: folder(of: path, for: path), as: name(of: path), with: bytes, mode: mode, isDurable: isDurable)
  }

  /// Replaces a file like `replace(_:with:mode:isDurable:)`, in a folder that may belong to another user. The new file
  /// has the owner of the old one, or else of its folder: a file written with `sudo` still belongs to its user or
  /// service.
  package static func replaceForOwner(
    _ path: String, with bytes: some Sequence<UInt8>, mode: mode_t
  ) throws(SystemError) {
    _ = try replace(
      path, in: folder(of: path, for: path), as: name(of: path), with: bytes, mode: mode, owner: owner(of: path))
  }

  /// Replaces a file like `replace(_:with:mode:isDurable:)`, and gives it the owner of another file: a file written
  /// with `sudo` beside a user's file belongs to the user.
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
  /// - Returns: the new file. It was locked before it got its name, so nobody finds it unlocked. It has the owner of
  ///   the old file, or else of its folder: a file that `sudo` writes for a daemon belongs to the daemon.
  package static func replaceLocked(
    _ path: String, with bytes: some Sequence<UInt8>, mode: mode_t
  ) throws(SystemError) -> Descriptor {
    try replace(
      path, in: folder(of: path, for: path), as: name(of: path), with: bytes, mode: mode, owner: owner(of: path),
      isLocked: true)
  }

  /// The owner of a file or, if it does not exist, of its folder. Nil unless this process is root: nobody else can give
  /// files away, and a service may be killed for trying (systemd.exec(5), SystemCallFilter).
  package static func owner(of path: String) -> (user: uid_t, group: gid_t)? {
    var status = stat()
    guard geteuid() == 0, stat(path, &status) == 0 || stat(parent(of: path), &status) == 0 else { return nil }
    return (status.st_uid, status.st_gid)
  }

  /// Replaces the content of an existing file atomically. Its mode and owner stay (after `sudo`, too), and a link to it
  /// stays a link.
  package static func rewrite(_ path: String, with bytes: some Sequence<UInt8>) throws(SystemError) {
    var status = stat()
    _ = try check("open", path) { stat(path, &status) }
    try rewrite(path, known: status, with: bytes)
  }

  /// Reads a file, and rewrites it with the result of `change`, unless the content stays the same.
  ///
  /// The replaced file is the file that was read. So a user who can move folders and links on the path, while root
  /// edits this user's file, cannot redirect the change to another file.
  ///
  /// - Returns: whether the file was rewritten.
  /// - Throws: `SystemError`, and the errors of `change`.
  @discardableResult
  package static func edit(_ path: String, _ change: ([UInt8]) throws -> [UInt8]) throws -> Bool {
    // Stays open until the end, so that no other file gets its inode number.
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
  ///   - path: the path in errors, as the user knows it.
  ///   - owner: the file's new owner, if this user may give files away; nil for this process's user.
  private static func replace(
    _ path: String, in folder: borrowing Descriptor, as name: String, with bytes: some Sequence<UInt8>, mode: mode_t,
    owner: (user: uid_t, group: gid_t)? = nil, isLocked: Bool = false, isDurable: Bool = true
  ) throws(SystemError) -> Descriptor {
    let temporary = "\(name).\(getpid()).new"
    let place = folder.number
    var old = stat()
    if fstatat(place, name, &old, AT_SYMLINK_NOFOLLOW) == 0 {
      // Root may rename a file over a device, and then every program of the machine misses the device.
      guard [S_IFREG, S_IFLNK, S_IFDIR].contains(old.st_mode & S_IFMT) else {
        throw SystemError("replace", "\(path), which is not a regular file", code: EINVAL)
      }
    }
    unlinkat(place, temporary, 0)
    let file = Descriptor(
      adopting: try check("write", path) {
        openat(place, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
      })
    do throws(SystemError) {
      let number = file.number
      if isLocked, !file.lock() { throw SystemError("lock", path) }
      // Best effort, and before the mode, because fchown(2) clears some mode bits.
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

  /// Removes what runs that were cut off have left beside a file that one program at a time replaces. Only that program
  /// may call this.
  package static func removeLeftovers(of path: String) {
    guard let names = try? names(in: parent(of: path)) else { return }
    let (prefix, suffix) = ("\(name(of: path)).", ".new")
    for name in names where name.hasPrefix(prefix) && name.hasSuffix(suffix) {
      // A process number, twice where the new file itself was being replaced.
      let middle = name.dropFirst(prefix.count).dropLast(suffix.count).split(separator: ".")
      if !middle.isEmpty, middle.allSatisfy({ Int32($0) != nil || $0 == "new" }) {
        unlink("\(parent(of: path))/\(name)")
      }
    }
  }

  private static func folder(of path: String, for subject: String) throws(SystemError) -> Descriptor {
    let parent = parent(of: path)
    return Descriptor(
      adopting: try check("write", subject) { Glibc.open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
  }

  /// The target of a symbolic link, which need not exist; nil if there is no such link or this user may not read it.
  package static func target(ofLink path: String) -> String? {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { target in
      guard let text = target.baseAddress else { return nil }
      let count = readlink(path, text, target.count)
      return count > 0 ? String(decoding: UnsafeRawBufferPointer(target).prefix(count), as: UTF8.self) : nil
    }
  }

  /// The last component of a path.
  package static func name(of path: String) -> String {
    path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
  }

  /// Creates a file, and returns when it is on the medium; throws EEXIST if it exists.
  ///
  /// - Parameter isNamed: whether its name is on the medium too: false if the caller syncs the folder after the last of
  ///   several files.
  package static func create(
    _ path: String, with bytes: some Sequence<UInt8>, mode: mode_t, isNamed: Bool = true
  ) throws(SystemError) {
    let file = try Descriptor.open(path, O_WRONLY | O_CREAT | O_EXCL, mode: mode)
    let number = file.number
    do throws(SystemError) {
      _ = try check("set the mode of", path) { fchmod(number, mode) }
      try file.write(bytes, path)
      try file.synchronize(path)
      if isNamed { try synchronizeFolder(of: path) }
    } catch {
      // Half a file would block the next attempt.
      unlink(path)
      throw error
    }
  }

  /// Waits until the names in the folder of this file are on the medium: after a power cut, a file that was synced, and
  /// whose name was not, may be gone.
  package static func synchronizeFolder(of path: String) throws(SystemError) {
    let parent = parent(of: path)
    try Descriptor.open(parent, O_RDONLY | O_DIRECTORY).synchronize(parent)
  }

  /// Creates a folder, and missing folders above it, with `mode`. Returns when they are on the medium.
  package static func createFolder(_ path: String, mode: mode_t) throws(SystemError) {
    if isFolder(path) { return }
    let above = parent(of: path)
    if above != path, !exists(above) { try createFolder(above, mode: mode) }
    if mkdir(path, mode) == -1, errno != EEXIST { throw SystemError("create the folder", path) }
    try synchronizeFolder(of: path)
  }

  /// Creates a folder likewise, with the owner of the folder above it.
  package static func createFolderForOwner(_ path: String, mode: mode_t) throws(SystemError) {
    if isFolder(path) { return }
    let owner = owner(of: path)
    try createFolder(path, mode: mode)
    guard let owner else { return }
    // If somebody replaces the folder by a link meanwhile, the link is not followed, so nothing else changes its owner.
    let folder = try Descriptor.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    _ = fchown(folder.number, owner.user, owner.group)
    try folder.synchronize(path)
  }

  /// Opens a file for appending, or creates it with the owner of its folder. Its name is then on the medium, because
  /// those who append sync only the content.
  package static func openToAppendForOwner(_ path: String, mode: mode_t) throws(SystemError) -> Descriptor {
    let owner = owner(of: path)
    do throws(SystemError) {
      let new = try Descriptor.open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND, mode: mode)
      if let owner { _ = fchown(new.number, owner.user, owner.group) }
      try synchronizeFolder(of: path)
      return new
    } catch  where error.code == EEXIST {
      // A device or a pipe may have the name.
      return try Descriptor.open(path, O_RDWR | O_APPEND | O_NONBLOCK | O_NOCTTY)
    }
  }

  /// Whether something has this name. True also if this user may not look there: opening it will then report the error.
  package static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 || errno == EACCES }

  package static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// The names in a folder, unordered.
  package static func names(in folder: String) throws(SystemError) -> [String] {
    try names(in: .open(folder, O_RDONLY | O_DIRECTORY), folder)
  }

  /// The names in an open folder, unordered. The folder can be read only once.
  package static func names(in folder: borrowing Descriptor, _ subject: String) throws(SystemError) -> [String] {
    let number = folder.number
    // The stream closes its descriptor, so it gets a duplicate.
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

  /// The folder that contains a path: `.` for a bare name.
  package static func parent(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// Resolves a path in a file against that file's folder: an absolute path stays, a relative one is below `folder`.
  ///
  /// `..` is resolved only if the folder is not a link: behind a link, `..` leads elsewhere.
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

  /// Whether the path itself is a folder: not a link to one, and not `.` or `..`.
  static func isFolderItself(_ path: String) -> Bool {
    var status = stat()
    return ![".", ".."].contains(name(of: path)) && lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Whether anyone other than the owner has rights to a file (mode bits 077).
  package static func isReadableByOthers(_ path: String) throws(SystemError) -> Bool {
    var status = stat()
    _ = try check("open", path) { stat(path, &status) }
    return status.st_mode & 0o077 != 0
  }
}
