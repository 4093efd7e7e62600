import CLinux
import Glibc

/// Reports when a file is created, written, replaced, or removed. The file need not exist (inotify(7)).
///
/// It watches the folder. It does not see changes to a link's target, changes that other machines make on a shared file
/// system, or the kernel's changes in sysfs.
package final class FileWatch {
  package enum Event: Sendable {
    case none
    /// The file has changed since the last call.
    case changed
    /// The folder is gone, so no more events will come.
    case folderGone
  }

  private let descriptor: Descriptor
  private let folder: String
  private let name: [UInt8]
  /// The folder's device and inode.
  private let identity: (dev_t, ino_t)

  /// - Parameter includingContent: false ignores writes to the file.
  package init(_ path: String, includingContent: Bool) throws(SystemError) {
    descriptor = Descriptor(
      adopting: try check("watch", path) { inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK)) })
    let (number, folder) = (descriptor.number, Files.parent(of: path))
    // Before the watch begins: if another folder takes its place in between, `isInPlace` reveals it.
    var status = stat()
    _ = try check("watch", path) { stat(folder, &status) }
    (self.folder, identity) = (folder, (status.st_dev, status.st_ino))
    var mask = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF
    if includingContent { mask |= IN_MODIFY | IN_CLOSE_WRITE }
    _ = try check("watch", path) { inotify_add_watch(number, folder, UInt32(mask) | UInt32(IN_ONLYDIR)) }
    name = Array(Files.name(of: path).utf8)
  }

  /// Readable after an event in the folder; borrowed.
  package var number: Int32 { descriptor.number }

  /// Whether the path still leads to the watched folder. inotify reports nothing if something is mounted over the
  /// folder, a folder above it is replaced, or a link on the path changes.
  package var isInPlace: Bool {
    var status = stat()
    return stat(folder, &status) == 0 && (status.st_dev, status.st_ino) == identity
  }

  /// Takes all events so far.
  package func next() throws(SystemError) -> Event {
    var event = Event.none
    while true {
      let count = withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
        let count = Glibc.read(descriptor.number, buffer.baseAddress, buffer.count)
        if count > 0 { note(UnsafeRawBufferPointer(rebasing: buffer[..<count]), &event) }
        return count
      }
      if count == -1, errno == EAGAIN { return event }
      if count == -1, errno != EINTR { throw SystemError("watch") }
    }
  }

  private func note(_ events: UnsafeRawBufferPointer, _ event: inout Event) {
    var start = 0
    while start < events.count {
      let header = events.loadUnaligned(fromByteOffset: start, as: inotify_event.self)
      let end = start + MemoryLayout<inotify_event>.size + Int(header.len)
      let named = events[start + MemoryLayout<inotify_event>.size..<end].prefix { $0 != 0 }
      let isOver = header.mask & UInt32(IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF | IN_MOVE_SELF) != 0
      if isOver {
        event = .folderGone
      } else if case .none = event, header.mask & UInt32(IN_Q_OVERFLOW) != 0 || named.elementsEqual(name) {
        event = .changed
      }
      start = end
    }
  }
}
