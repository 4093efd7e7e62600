import Synchronization
import SystemIO

/// What this program does with each adapter of this machine: connecting and scanning exclude one another.
///
/// The kernel scans itself while it connects. A scan of this program that is on when it begins, or that begins and ends
/// meanwhile, lets the kernel wait for ever. So the scan ends before, no other begins or ends then, and each goes on as
/// soon as the connection is there or has failed.
enum AdapterUse {
  private struct Use {
    /// Attempts to connect: as long as there is one, no scan begins.
    var attempts = 0
    /// Those for which the kernel connects: as long as there is one, no scan ends either.
    var connecting = 0
    /// When this program last ended a scan or an attempt.
    var end: Instant?
  }

  /// By the adapter's name.
  private static let uses = Mutex<[String: Use]>([:])

  /// Runs `begin`, which begins a scan, unless an attempt to connect has begun.
  static func beginScan(_ adapter: String, _ begin: () throws(RadioError) -> Void) throws(RadioError) {
    try uses.withLock { uses throws(RadioError) in
      if uses[adapter, default: Use()].attempts == 0 { try begin() }
    }
  }

  /// Runs `end`, which ends the adapter's only scan, unless the kernel connects. This program's other scans go on: they
  /// see that it was not another program.
  static func endScan(_ adapter: String, _ end: () -> Void) {
    uses.withLock { uses in
      guard uses[adapter, default: Use()].connecting == 0 else { return }
      end()
      uses[adapter, default: Use()].end = .now
    }
  }

  /// Runs `connect`, before which `prepare` ends the scan.
  static func whileConnecting<Result>(
    _ adapter: String, after prepare: () -> Void, _ connect: () throws(LinkError) -> Result
  ) throws(LinkError) -> Result {
    uses.withLock { $0[adapter, default: Use()].attempts += 1 }
    prepare()
    uses.withLock { $0[adapter]?.connecting += 1 }
    defer {
      uses.withLock {
        $0[adapter]?.attempts -= 1
        $0[adapter]?.connecting -= 1
        $0[adapter]?.end = .now
      }
    }
    return try connect()
  }

  /// Whether an attempt to connect has begun and not ended.
  static func isConnecting(_ adapter: String) -> Bool { uses.withLock { $0[adapter, default: Use()].attempts > 0 } }

  /// When the last scan or attempt ended; nil if there was none.
  static func lastEnd(_ adapter: String) -> Instant? { uses.withLock { $0[adapter]?.end } }
}
