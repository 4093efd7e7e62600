package import Glibc

/// Connections to other programs' sockets. Each attempt has a time limit and ends at an interruption.
package enum Connecting {
  package enum Failure: Error, Equatable {
    /// The name has no address: the code of getaddrinfo(3).
    case unresolved(Int32)
    /// The system's reason; of a name with several addresses, that of the last one to which there is a way.
    case refused(SystemError)
    case interrupted

    /// The system's text; nil at an interruption.
    package var reason: String? {
      switch self {
      case .unresolved(let code): String(cString: gai_strerror(code))
      case .refused(let error): error.reason
      case .interrupted: nil
      }
    }
  }

  /// How long an address may take to connect. The kernel alone would try for two minutes.
  package static let patience = Duration.seconds(5)

  /// Connects to a local socket. Its path must fit into an address (unix(7)).
  ///
  /// - Returns: a non-blocking socket.
  package static func connect(path: String, _ interruption: Interruption?) throws(Failure) -> Descriptor {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return try withUnsafeBytes(of: &address) { bytes throws(Failure) in
      try connect(AF_UNIX, to: bytes, until: .now + patience, interruption)
    }
  }

  /// Connects by TCP. Tries each address of the name, in the order of RFC 6724.
  ///
  /// - Parameter deadline: when all attempts end; nil if only each of them has its limit.
  /// - Returns: a non-blocking socket.
  package static func connect(
    host: String, port: UInt16, until deadline: Instant? = nil, _ interruption: Interruption?
  ) throws(Failure) -> Descriptor {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, String(port), &hints, &found)
    guard code == 0 else { throw .unresolved(code) }
    defer { freeaddrinfo(found) }
    // A name may have several addresses, and some may not listen: `localhost` is ::1 and 127.0.0.1.
    var failure = Failure.unresolved(EAI_NONAME)
    var next = found
    while let candidate = next?.pointee {
      let address = UnsafeRawBufferPointer(start: candidate.ai_addr, count: Int(candidate.ai_addrlen))
      let limit = Instant.now + patience
      do {
        return try connect(candidate.ai_family, to: address, until: min(limit, deadline ?? limit), interruption)
      } catch .interrupted {
        throw .interrupted
      } catch {
        if case .refused(let reason) = error, case .refused = failure, reason.isForWantOfWay {} else { failure = error }
      }
      next = candidate.ai_next
    }
    throw failure
  }

  private static func connect(
    _ family: Int32, to address: UnsafeRawBufferPointer, until deadline: Instant, _ interruption: Interruption?
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
        let ready = try check("poll") {
          poll(&entries, 2, Int32(clamping: Instant.now.duration(to: deadline).roundedUpToMilliseconds))
        }
        if entries[1].revents != 0 { throw Failure.interrupted }
        if ready == 0 { throw SystemError("connect", code: ETIMEDOUT) }
        var code: Int32 = 0
        var codeSize = socklen_t(MemoryLayout<Int32>.size)
        _ = try check("connect") { getsockopt(number, SOL_SOCKET, SO_ERROR, &code, &codeSize) }
        if code != 0 { throw SystemError("connect", code: code) }
      }
      return socket
    } catch let error as SystemError {
      throw .refused(error)
    } catch {
      throw .interrupted
    }
  }

  /// The numeric address at the other end of a connected socket; nil if it has no such form.
  package static func peer(of socket: borrowing Descriptor) -> String? {
    var address = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutableBytes(of: &address) { bytes in
      let pointer = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress!
      return getpeername(socket.number, pointer, &size) == 0 ? numericHost(pointer, size) : nil
    }
  }

  /// The numeric form of an address; nil if it has none.
  package static func numericHost(_ address: UnsafePointer<sockaddr>, _ size: socklen_t) -> String? {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(NI_MAXHOST)) { text in
      let code = getnameinfo(address, size, text.baseAddress, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
      let bytes = UnsafeRawBufferPointer(text).prefix { $0 != 0 }
      return code == 0 ? String(decoding: bytes, as: UTF8.self) : nil
    }
  }
}
