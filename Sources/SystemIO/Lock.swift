import CLinux

extension Descriptor {
  /// Takes the exclusive lock of flock(2). It lasts until the descriptor is closed.
  ///
  /// - Returns: false if somebody else has the lock.
  package func lock() -> Bool { flock(number, LOCK_EX | LOCK_NB) == 0 }
}
