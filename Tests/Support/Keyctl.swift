import Glibc

/// The kernel's keyrings by its system calls (keyctl(2), add_key(2)), beside the program under test.
package enum Keyctl {
  private typealias Call = @convention(c) (Int, Int, Int, Int, Int, Int) -> Int

  // The C library has no functions for them, and Swift cannot call its variadic syscall(2).
  private static func system(_ number: Int, _ a: Int, _ b: Int, _ c: Int, _ d: Int, _ e: Int) -> Int {
    unsafeBitCast(dlsym(nil, "syscall"), to: Call.self)(number, a, b, c, d, e)
  }

  #if arch(x86_64)
    private static let (addKey, keyctl) = (248, 250)
  #else
    // Linux, include/uapi/asm-generic/unistd.h
    private static let (addKey, keyctl) = (217, 219)
  #endif

  // Linux, include/uapi/linux/keyctl.h
  package static let (revoke, setPermissions, setTimeout) = (3, 5, 15)
  package static let session = -3
  private static let (join, search, read) = (1, 10, 11)

  /// - Returns: -1 if the kernel refuses; `errno` says why.
  package static func control(_ operation: Int, _ key: Int, _ argument: Int = 0) -> Int {
    system(keyctl, operation, key, argument, 0, 0)
  }

  /// Begins a session for this thread, as a login does: its keyring is empty, and ends with the thread.
  package static func login() -> Bool { control(join, 0) > 0 }

  /// Whether this system gives programs keyrings; many containers do not.
  package static let isThere = control(0, session) > 0

  /// Adds a key, or writes into the one with that name, as add_key(2) does.
  package static func add(_ name: String, _ secret: [UInt8]) -> Int {
    "user".withCString { type in
      name.withCString { name in
        secret.withUnsafeBytes { secret in
          system(
            addKey, Int(bitPattern: type), Int(bitPattern: name), Int(bitPattern: secret.baseAddress), secret.count,
            session)
        }
      }
    }
  }

  /// The number of a key of this session; -1 if there is none.
  package static func find(_ name: String) -> Int {
    "user".withCString { type in
      name.withCString { name in system(keyctl, search, session, Int(bitPattern: type), Int(bitPattern: name), 0) }
    }
  }

  package static func secret(of key: Int) -> [UInt8]? {
    var secret = [UInt8](repeating: 0, count: 256)
    let size = secret.withUnsafeMutableBytes { bytes in
      system(keyctl, read, key, Int(bitPattern: bytes.baseAddress), bytes.count, 0)
    }
    return (0...256).contains(size) ? Array(secret[..<size]) : nil
  }
}
