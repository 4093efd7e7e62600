import CLinux

extension Descriptor {
  /// Takes the exclusive lock of flock(2), which lasts until the descriptor is closed.
  ///
  /// - Returns: false when another has it.
  package func lock() -> Bool { flock(number, LOCK_EX | LOCK_NB) == 0 }
}
