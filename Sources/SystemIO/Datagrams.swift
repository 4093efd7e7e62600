import Glibc

/// A socket that sends datagrams to a path or to a name in the abstract namespace (unix(7)), and never waits.
package final class DatagramSender: Sendable {
  private let socket: Descriptor
  private let address: sockaddr_un
  private let addressSize: socklen_t

  /// - Parameters:
  ///   - name: a path, or `@` and an abstract name.
  ///   - subject: the socket's name in errors.
  package init(to name: String, _ subject: String) throws(SystemError) {
    let path = Array(name.utf8)
    var address = sockaddr_un()
    // The path and its NUL must fit.
    guard path.count < MemoryLayout.size(ofValue: address.sun_path) else {
      throw SystemError("use", subject, code: ENAMETOOLONG)
    }
    socket = Descriptor(
      adopting: try check("create a socket") {
        Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
      })
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) {
      $0.copyBytes(from: path)
      if path.first == UInt8(ascii: "@") { $0[0] = 0 }
    }
    self.address = address
    // `sun_path` is a stored property, so it has an offset.
    addressSize = socklen_t(MemoryLayout.offset(of: \sockaddr_un.sun_path)! + path.count)
  }

  /// - Returns: whether the datagram was taken. It is taken at once or not at all.
  @discardableResult
  package func send(_ bytes: [UInt8]) -> Bool {
    withUnsafeBytes(of: address) { address in
      sendto(
        socket.number, bytes, bytes.count, Int32(MSG_NOSIGNAL),
        address.assumingMemoryBound(to: sockaddr.self).baseAddress, addressSize) == bytes.count
    }
  }
}
