package import Domain
import Glibc
package import SystemIO

/// A connection to gpsd, which reads the receivers of satellite systems: JSON lines over TCP (gpsd_json(5)).
///
/// - Threads: one uses it.
/// - Latency: connecting and `next` wait, the latter until its deadline; an interruption ends both.
package final class GPSDConnection {
  package static let standardPort: UInt16 = 2947

  package enum Failure: Domain.Failure, Equatable {
    case unreachable(String, String)
    case closed(String)
    /// It sends lines without an end, or nothing that is JSON.
    case malformed(String)
    case interrupted

    package var description: String {
      switch self {
      case .unreachable(let name, let reason): "\(name): no connection to gpsd: \(reason)"
      case .closed(let name): "\(name): gpsd closed the connection"
      case .malformed(let name): "\(name): this is no gpsd"
      case .interrupted: "interrupted"
      }
    }

    package var exitStatus: ExitStatus {
      switch self {
      case .unreachable, .closed: .unavailable
      case .malformed: .badData
      case .interrupted: .failure
      }
    }

    package var hint: String? {
      switch self {
      case .unreachable: "is gpsd running, and has it a receiver?"
      case .closed, .malformed, .interrupted: nil
      }
    }

    package var isInterruption: Bool { self == .interrupted }
  }

  /// Bytes of the longest line: its list of satellites is the longest.
  private static let longest = 16_384
  /// How long connecting to one address may take.
  private static let patience = Duration.seconds(5)

  private let name: String
  private let socket: Descriptor
  private let interruption: Interruption?
  private var buffer: [UInt8] = []

  package init(host: String, port: UInt16, interruption: Interruption? = nil) throws(Failure) {
    name = "\(host):\(port)"
    self.interruption = interruption
    socket = try Self.connect(host, port, name, interruption)
    do {
      try socket.write(#"?WATCH={"enable":true,"json":true};"#.utf8)
    } catch {
      throw .closed(name)
    }
  }

  /// Waits for the next report of the place; nil at the deadline.
  package func next(until deadline: ContinuousClock.Instant?) throws(Failure) -> PositionReport? {
    while true {
      while let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
        let line = buffer[..<end]
        buffer = Array(buffer[(end + 1)...])
        guard line.first == UInt8(ascii: "{") else { throw .malformed(name) }
        if let report = PositionReport(line: line) { return report }
      }
      guard buffer.count <= Self.longest else { throw .malformed(name) }
      guard let ready = try? waitReadable([socket.number, interruption?.number ?? -1], until: deadline) else {
        throw .closed(name)
      }
      if ready[1] { throw .interrupted }
      guard ready[0] else { return nil }
      var chunk = [UInt8](repeating: 0, count: 4096)
      let count = recv(socket.number, &chunk, chunk.count, 0)
      if count < 0, errno == EAGAIN || errno == EINTR { continue }
      guard count > 0 else { throw .closed(name) }
      buffer += chunk[..<count]
    }
  }

  private static func connect(
    _ host: String, _ port: UInt16, _ name: String, _ interruption: Interruption?
  ) throws(Failure) -> Descriptor {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(host, String(port), &hints, &found)
    guard status == 0 else { throw .unreachable(name, String(cString: gai_strerror(status))) }
    defer { freeaddrinfo(found) }
    // `localhost` is ::1 and 127.0.0.1, and gpsd may listen on one of them.
    var reason = "the name has no address"
    var next = found
    while let candidate = next?.pointee {
      let socket = Descriptor(
        adopting: Glibc.socket(
          candidate.ai_family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0))
      var code: Int32 = 0
      if Glibc.connect(socket.number, candidate.ai_addr, candidate.ai_addrlen) == -1 {
        code = errno
        if code == EINPROGRESS {
          var entries = [
            pollfd(fd: socket.number, events: Int16(POLLOUT), revents: 0),
            pollfd(fd: interruption?.number ?? -1, events: Int16(POLLIN), revents: 0),
          ]
          let ready = poll(&entries, 2, Int32(patience.roundedUpToMilliseconds))
          if entries[1].revents != 0 { throw .interrupted }
          var size = socklen_t(MemoryLayout<Int32>.size)
          code = ready > 0 ? 0 : ETIMEDOUT
          if ready > 0 { getsockopt(socket.number, SOL_SOCKET, SO_ERROR, &code, &size) }
        }
      }
      if code == 0 { return socket }
      reason = SystemError("connect", code: code).reason
      next = candidate.ai_next
    }
    throw .unreachable(name, reason)
  }
}
