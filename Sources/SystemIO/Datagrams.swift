import Glibc

/// A socket that sends datagrams to a path or to a name in the abstract namespace (unix(7)), and never waits.
package final class DatagramSender: Sendable {
  private let socket: Descriptor
  private let address: LocalAddress

  /// - Parameters:
  ///   - name: a path, or `@` and an abstract name.
  ///   - subject: the socket's name in errors.
  package init(to name: String, _ subject: String) throws(SystemError) {
    address = try LocalAddress(name, subject)
    socket = try address.socket(SOCK_DGRAM)
  }

  /// - Returns: whether the datagram was taken. It is taken at once or not at all.
  @discardableResult
  package func send(_ bytes: [UInt8]) -> Bool {
    address.with { sendto(socket.number, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, $1) == bytes.count }
  }
}

/// The address of a local socket (unix(7)): a path, or a name in the abstract namespace, which is that of the network
/// namespace. An abstract name has no permissions, and is free again as soon as its holder has ended.
struct LocalAddress {
  private let address: sockaddr_un
  private let size: socklen_t

  /// - Parameters:
  ///   - name: a path, or `@` and an abstract name.
  ///   - subject: the socket's name in errors.
  init(_ name: String, _ subject: String) throws(SystemError) {
    let path = Array(name.utf8)
    var address = sockaddr_un()
    // The path and its NUL must fit.
    guard path.count < MemoryLayout.size(ofValue: address.sun_path) else {
      throw SystemError("use", subject, code: ENAMETOOLONG)
    }
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) {
      $0.copyBytes(from: path)
      if path.first == UInt8(ascii: "@") { $0[0] = 0 }
    }
    self.address = address
    // `sun_path` is a stored property, so it has an offset.
    size = socklen_t(MemoryLayout.offset(of: \sockaddr_un.sun_path)! + path.count)
  }

  /// - Returns: a non-blocking socket of this kind of address.
  func socket(_ type: __socket_type) throws(SystemError) -> Descriptor {
    Descriptor(
      adopting: try check("create a socket") {
        Glibc.socket(AF_UNIX, Int32(type.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
      })
  }

  func with<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    // The bytes are those of a whole sockaddr_un, so there is an address.
    withUnsafeBytes(of: address) { body($0.assumingMemoryBound(to: sockaddr.self).baseAddress!, size) }
  }
}
