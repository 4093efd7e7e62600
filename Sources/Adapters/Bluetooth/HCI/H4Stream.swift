import Glibc
import SystemIO

/// A controller at the other end of a local or TCP socket. It is ours alone while the connection lasts.
final class H4Stream: HCILink {
  let name: String
  let needsInitialization = true
  private let socket: Descriptor
  private var deframer = H4Deframer()
  private(set) var emptied = ContinuousClock.now
  /// When the socket was last empty; bytes that were read may still wait in the deframer.
  private var drained = ContinuousClock.now

  /// How long connecting may take. The kernel alone would try for two minutes.
  private static let connectTimeout = Duration.seconds(5)

  init(connectingTo address: StreamAddress, _ interruption: Interruption?) throws(RadioError) {
    name = RadioSpec.h4(address).description
    switch address {
    case .unix(let path): socket = try Self.connect(path: path, of: name, interruption)
    case .tcp(let host, let port): socket = try Self.connect(host: host, port: port, of: name, interruption)
    }
  }

  private static func connect(
    path: String, of radio: String, _ interruption: Interruption?
  ) throws(RadioError) -> Descriptor {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    // RadioSpec has checked that the path and its NUL fit.
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return try withUnsafeBytes(of: &address) { bytes throws(RadioError) in
      try connect(AF_UNIX, to: bytes, of: radio, interruption)
    }
  }

  private static func connect(
    host: String, port: UInt16, of radio: String, _ interruption: Interruption?
  ) throws(RadioError) -> Descriptor {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(host, String(port), &hints, &found)
    guard status == 0 else { throw .cannotConnect(radio: radio, reason: String(cString: gai_strerror(status))) }
    defer { freeaddrinfo(found) }
    // A name may have several addresses, and not all may listen: `localhost` is ::1 and 127.0.0.1.
    var failure = RadioError.cannotConnect(radio: radio, reason: "the name has no address")
    var next = found
    while let candidate = next?.pointee {
      let address = UnsafeRawBufferPointer(start: candidate.ai_addr, count: Int(candidate.ai_addrlen))
      do {
        return try connect(candidate.ai_family, to: address, of: radio, interruption)
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
    _ family: Int32, to address: UnsafeRawBufferPointer, of radio: String, _ interruption: Interruption?
  ) throws(RadioError) -> Descriptor {
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
        let timeout = Int32(connectTimeout.roundedUpToMilliseconds)
        let ready = try check("poll") { poll(&entries, 2, timeout) }
        if entries[1].revents != 0 { throw RadioError.interrupted }
        if ready == 0 { throw SystemError("connect", code: ETIMEDOUT) }
        var code: Int32 = 0
        var codeSize = socklen_t(MemoryLayout<Int32>.size)
        _ = try check("connect") { getsockopt(number, SOL_SOCKET, SO_ERROR, &code, &codeSize) }
        if code != 0 { throw SystemError("connect", code: code) }
      }
      return socket
    } catch let error as SystemError {
      throw .cannotConnect(radio: radio, reason: error.reason)
    } catch {
      throw .interrupted
    }
  }

  var descriptor: Int32 { socket.number }

  func send(_ packet: [UInt8]) throws(RadioError) {
    // A few bytes, with an answer before the next: they always fit into the socket's buffer.
    let count = Glibc.send(socket.number, packet, packet.count, Int32(MSG_NOSIGNAL))
    guard count == packet.count else { throw .lost(radio: name, reason: SystemError("send").reason) }
  }

  func receive(
    until deadline: ContinuousClock.Instant?, _ interruption: Interruption?
  ) throws(RadioError) -> HCIPacket? {
    while true {
      do {
        if let event = try deframer.nextEvent() { return .event(event) }
      } catch {
        throw .garbled(radio: name, offset: error.offset, byte: error.byte)
      }
      emptied = drained
      let check = ContinuousClock.now + longestWait
      if try waitReadable(socket.number, of: name, until: min(deadline ?? check, check), interruption) {
        try readChunk()
      } else {
        drained = .now
        emptied = drained
        if let deadline, deadline <= .now { return nil }
      }
    }
  }

  private func readChunk() throws(RadioError) {
    let count = withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
      let count = recv(socket.number, buffer.baseAddress, buffer.count, 0)
      deframer.append(UnsafeRawBufferPointer(rebasing: buffer[..<max(count, 0)]))
      if count < buffer.count { drained = .now }
      return count
    }
    if count == 0 { throw .lost(radio: name, reason: "the controller closed the connection") }
    if count < 0, errno != EAGAIN, errno != EINTR { throw .lost(radio: name, reason: SystemError("read").reason) }
  }
}
