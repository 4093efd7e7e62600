import Glibc
package import SystemIO

/// A listening socket on a loopback port, for a test to play the broker.
package struct Port: ~Copyable {
  private let listener: Descriptor
  package let number: UInt16

  /// - Parameter number: 0 is any.
  package init(_ number: UInt16 = 0, backlog: Int32 = 8) throws {
    let listener = Descriptor(
      adopting: try check("socket") { Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0) })
    let socket = listener.number
    try Port.withLoopback(number) { address, size in _ = try check("bind") { bind(socket, address, size) } }
    _ = try check("listen") { listen(socket, backlog) }
    var address = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = try withUnsafeMutablePointer(to: &address) { pointer in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bytes in
        try check("getsockname") { getsockname(socket, bytes, &size) }
      }
    }
    self.listener = listener
    self.number = UInt16(bigEndian: address.sin_port)
  }

  package func accept() throws -> Descriptor {
    let socket = listener.number
    return Descriptor(adopting: try check("accept") { Glibc.accept(socket, nil, nil) })
  }

  /// A port that nobody listens on, below those that the kernel gives to outgoing connections, one of which could
  /// take it.
  package static func unused() throws -> UInt16 {
    while true {
      do {
        return try Port(.random(in: 20_000..<32_000)).number
      } catch let error as SystemError where error.code == EADDRINUSE {}
    }
  }

  /// Waits until somebody listens there.
  package static func waitForListener(_ number: UInt16) throws {
    let deadline = Instant.now + .seconds(60)
    while (try? connect(to: number)) == nil {
      guard .now < deadline else { throw Subprocess.Missing(description: "nobody listens on \(number)") }
      usleep(5000)
    }
  }

  /// - Parameter flags: SOCK_NONBLOCK begins to connect and does not wait.
  package static func connect(to number: UInt16, flags: Int32 = 0) throws -> Descriptor {
    let descriptor = Descriptor(
      adopting: try check("socket") { Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | flags, 0) })
    let socket = descriptor.number
    try withLoopback(number) { address, size in
      if Glibc.connect(socket, address, size) == -1, errno != EINPROGRESS { throw SystemError("connect") }
    }
    return descriptor
  }

  private static func withLoopback(
    _ number: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Void
  ) throws {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = number.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    try withUnsafePointer(to: &address) { pointer in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        try body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }
}
