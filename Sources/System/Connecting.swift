import Glibc

/// Connections to other programs' sockets. Each attempt has a time limit and ends at an interruption.
package enum Connecting {
  package enum Failure: Error, Equatable {
    /// The system's reason.
    case refused(String)
    case interrupted
  }

  /// How long connecting may take. The kernel alone would try for two minutes.
  package static let patience = Duration.seconds(5)

  /// Connects to a local socket. Its path must fit into an address (unix(7)).
  ///
  /// - Returns: a non-blocking socket.
  package static func connect(path: String, _ interruption: Interruption?) throws(Failure) -> Descriptor {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return try withUnsafeBytes(of: &address) { bytes throws(Failure) in
      try connect(AF_UNIX, to: bytes, interruption)
    }
  }

  /// Connects by TCP.
  ///
  /// - Returns: a non-blocking socket.
  package static func connect(
    host: String, port: UInt16, _ interruption: Interruption?
  ) throws(Failure) -> Descriptor {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(host, String(port), &hints, &found)
    guard status == 0 else { throw .refused(String(cString: gai_strerror(status))) }
    defer { freeaddrinfo(found) }
    // A name may have several addresses, and some may not listen: `localhost` is ::1 and 127.0.0.1.
    var failure = Failure.refused("the name has no address")
    var next = found
    while let candidate = next?.pointee {
      let address = UnsafeRawBufferPointer(start: candidate.ai_addr, count: Int(candidate.ai_addrlen))
      do {
        return try connect(candidate.ai_family, to: address, interruption)
      } catch .interrupted {
        throw .interrupted
      } catch {
        failure = error
      }
      next = candidate.ai_next
    }
    throw failure
  }

  private static func connect(
    _ family: Int32, to address: UnsafeRawBufferPointer, _ interruption: Interruption?
  ) throws(Failure) -> Descriptor {
    do {
      let socket = Descriptor(
        adopting: try check("create a socket") {
          Glibc.socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        })
      let number = socket.number
      let size = socklen_t(address.count)
      if Glibc.connect(number, address.assumingMemoryBound(to: sockaddr.self).baseAddress, size) == -1 {
        guard errno == EINPROGRESS else { throw SystemError("connect") }
        var entries = [
          pollfd(fd: number, events: Int16(POLLOUT), revents: 0),
          pollfd(fd: interruption?.number ?? -1, events: Int16(POLLIN), revents: 0),
        ]
        let timeout = Int32(patience.roundedUpToMilliseconds)
        let ready = try check("poll") { poll(&entries, 2, timeout) }
        if entries[1].revents != 0 { throw Failure.interrupted }
        if ready == 0 { throw SystemError("connect", code: ETIMEDOUT) }
        var code: Int32 = 0
        var codeSize = socklen_t(MemoryLayout<Int32>.size)
        _ = try check("connect") { getsockopt(number, SOL_SOCKET, SO_ERROR, &code, &codeSize) }
        if code != 0 { throw SystemError("connect", code: code) }
      }
      return socket
    } catch let error as SystemError {
      throw .refused(error.reason)
    } catch {
      throw .interrupted
    }
  }
}
