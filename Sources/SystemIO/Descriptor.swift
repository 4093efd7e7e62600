package import Glibc

/// The only owner of a file descriptor. It closes the descriptor at the end of its life.
package struct Descriptor: ~Copyable, Sendable {
  /// The number, for system calls only. Callers must not keep or close it.
  package let number: Int32

  /// Takes over a descriptor that a system call has just returned.
  package init(adopting number: Int32) { self.number = number }

  deinit { close(number) }

  /// Opens a file; `O_CLOEXEC` is always added.
  package static func open(_ path: String, _ flags: Int32, mode: mode_t = 0) throws(SystemError) -> Descriptor {
    Descriptor(adopting: try check("open", path) { Glibc.open(path, flags | O_CLOEXEC, mode) })
  }

  /// Opens a regular file for reading. Opening a device, or a pipe without a writer, could wait forever.
  ///
  /// - Throws: EINVAL for anything but a regular file.
  package static func openRegular(_ path: String, _ flags: Int32 = 0) throws(SystemError) -> Descriptor {
    let file = try open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | flags)
    let number = file.number
    var status = stat()
    _ = try check("open", path) { fstat(number, &status) }
    switch status.st_mode & S_IFMT {
    case S_IFREG: return file
    case S_IFDIR: throw SystemError("read", path, code: EISDIR)
    default: throw SystemError("read", "\(path), which is not a regular file", code: EINVAL)
    }
  }

  /// Reads the available bytes, up to the buffer's size; 0 at the end.
  package func read(into buffer: UnsafeMutableRawBufferPointer, _ subject: String = "") throws(SystemError) -> Int {
    try check("read", subject) { Glibc.read(number, buffer.baseAddress, buffer.count) }
  }

  /// Writes all bytes, even if the kernel takes them in parts.
  package func write(_ bytes: some Sequence<UInt8>, _ subject: String = "") throws(SystemError) {
    let bytes = ContiguousArray(bytes)
    var done = 0
    while done < bytes.count {
      done += try check("write", subject) {
        bytes.withUnsafeBytes { Glibc.write(number, $0.baseAddress! + done, $0.count - done) }
      }
    }
  }

  /// Waits until all written data is on the medium.
  package func synchronize(_ subject: String = "") throws(SystemError) {
    _ = try check("fsync", subject) { fsync(number) }
  }
}

/// Waits until one of the descriptors is readable or has hung up, or the deadline has passed.
///
/// For a thread that waits for one thing. A program that waits for several uses an `EventLoop`.
///
/// - Returns: for each descriptor, in order, whether it is ready; all false when the deadline passed.
package func waitReadable(
  _ descriptors: [Int32], until deadline: Instant?
) throws(SystemError) -> [Bool] {
  try waitReady(descriptors.map { ($0, POLLIN) }, until: deadline)
}

/// Waits for events of poll(2), like `waitReadable`.
func waitReady(
  _ wanted: [(descriptor: Int32, event: Int32)], until deadline: Instant?
) throws(SystemError) -> [Bool] {
  var entries = wanted.map { pollfd(fd: $0.descriptor, events: Int16($0.event), revents: 0) }
  while true {
    // Rounded up: if the wait ended a little early, the caller would spin.
    let milliseconds = deadline.map { Int32(clamping: Instant.now.duration(to: $0).roundedUpToMilliseconds) }
    if poll(&entries, nfds_t(entries.count), milliseconds ?? -1) >= 0 { return entries.map { $0.revents != 0 } }
    if errno != EINTR { throw SystemError("poll") }
  }
}
