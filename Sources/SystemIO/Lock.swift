import CLinux

extension Descriptor {
  /// Takes the exclusive lock of flock(2). It lasts until the descriptor is closed.
  ///
  /// - Returns: false if somebody else has the lock.
  package func lock() -> Bool { flock(number, LOCK_EX | LOCK_NB) == 0 }

  /// Takes an exclusive lock on bytes of a file that is open for writing (F_OFD_SETLK in fcntl(2)). The bytes need not
  /// exist. The lock lasts until the descriptor is closed. Unlike flock(2), it is only for those who may write the
  /// file.
  ///
  /// - Returns: false if somebody else has a lock on one of them.
  package func lock(bytes: Range<Int>, _ subject: String) throws(SystemError) -> Bool {
    let number = number
    return try check("lock", subject) { lock_bytes(number, off_t(bytes.lowerBound), off_t(bytes.count)) } == 0
  }
}
