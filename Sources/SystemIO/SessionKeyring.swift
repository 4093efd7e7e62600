import CLinux
package import Domain
import Glibc

/// Secrets in the kernel's keyring of this login session (session-keyring(7)): in its memory, never on a disk, until a
/// time that the kernel enforces.
///
/// Of the keyrings, only the session's ends with the login. Where nobody has made one, as in a container, the kernel
/// takes that of all sessions of the user that have none (user-session-keyring(7)).
package enum SessionKeyring {
  /// Programs of the user who owns a key may see, read, find and link it. The possession of a key gives no right:
  /// programs of another user have this keyring too, if they were started in this session by su(1) or sudo(8). Nobody
  /// may change a key, its rights or its end.
  private static let rights = 0x001B_0000
  /// The bytes of the longest secret.
  private static let longest = 256

  /// Keeps a secret, in place of one with the same name.
  ///
  /// - Parameters:
  ///   - secret: 1 to 256 bytes.
  ///   - seconds: at least 1.
  package static func keep(_ secret: [UInt8], as name: String, for seconds: Int) throws(KeyringError) {
    precondition((1...longest).contains(secret.count) && seconds > 0)
    let session = try number()
    // It begins in a keyring that only this process has, until it has its rights and its end. It is linked then,
    // because add_key(2) would write into a key with this name that another user may have left in the session.
    let key = try check(add_user_key(name, secret, secret.count, KEY_SPEC_PROCESS_KEYRING))
    defer { _ = control_key(KEYCTL_UNLINK, key, Int(KEY_SPEC_PROCESS_KEYRING)) }
    _ = try check(control_key(KEYCTL_SET_TIMEOUT, key, seconds))
    _ = try check(control_key(KEYCTL_SETPERM, key, rights))
    _ = try check(control_key(KEYCTL_LINK, key, Int(session)))
  }

  /// A secret that is kept; nil if there is none, or if the system has no keyring for this program.
  package static func secret(_ name: String) -> [UInt8]? {
    guard let session = try? number(), let key = try? check(find_user_key(session, name)) else { return nil }
    var secret = [UInt8](repeating: 0, count: longest)
    let size = read_key(key, &secret, longest)
    return (1...longest).contains(size) ? Array(secret[..<size]) : nil
  }

  /// Forgets a secret at once, wherever else it is linked.
  ///
  /// - Returns: whether it was kept.
  package static func forget(_ name: String) throws(KeyringError) -> Bool {
    let session = try number()
    do {
      _ = try check(control_key(KEYCTL_INVALIDATE, check(find_user_key(session, name)), 0))
      return true
    } catch {
      // A key with this name that may not be found is another user's.
      guard [ENOKEY, EKEYEXPIRED, EKEYREVOKED, EACCES].contains(error.code) else { throw error }
      return false
    }
  }

  /// The number of the session's keyring. If a key were added to `KEY_SPEC_SESSION_KEYRING` where nobody has made one,
  /// the kernel would make one that ends with this process.
  private static func number() throws(KeyringError) -> Int32 {
    try check(control_key(KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0))
  }

  private static func check(_ result: Int32) throws(KeyringError) -> Int32 {
    guard result != -1 else { throw KeyringError(code: errno) }
    return result
  }
}

/// Why the kernel keeps no secret for this login session.
package struct KeyringError: Failure, Equatable {
  /// The `errno` value.
  package let code: Int32

  package var exitStatus: ExitStatus { .unavailable }

  package var description: String {
    switch code {
    case ENOSYS, EPERM: "this system gives the program no keyring: \(String(cString: strerror(code)))"
    case EDQUOT: "your keyrings in the kernel are full"
    case EKEYREVOKED, EKEYEXPIRED, ENOKEY: "the keyring of this login session has ended"
    default: "cannot use the keyring of this login session: \(String(cString: strerror(code)))"
    }
  }

  package var hint: String? {
    switch code {
    case ENOSYS, EPERM: "containers and sandboxes often forbid keyrings (keyctl in seccomp filters)"
    case EDQUOT: "/proc/keys lists the keys, /proc/key-users how many there may be"
    case EKEYREVOKED, EKEYEXPIRED, ENOKEY: "log in to this computer again"
    default: nil
    }
  }
}
