import Glibc
import SystemIO

/// A controller at the other end of a local or TCP socket. Only this program uses it while the connection lasts.
final class H4Stream: HCILink {
  let name: String
  let needsInitialization = true
  private let socket: Descriptor
  private var deframer = H4Deframer()
  private(set) var emptied = Instant.now
  /// When the socket was last empty; the deframer may still contain bytes.
  private var drained = Instant.now

  init(connectingTo address: StreamAddress, _ interruption: Interruption?) throws(RadioError) {
    name = RadioSpec.h4(address).description
    do throws(Connecting.Failure) {
      switch address {
      // RadioSpec has checked that the path and its NUL fit.
      case .unix(let path): socket = try Connecting.connect(path: path, interruption)
      case .tcp(let host, let port): socket = try Connecting.connect(host: host, port: port, interruption)
      }
    } catch {
      guard let reason = error.reason else { throw .interrupted }
      throw .cannotConnect(radio: name, reason: reason)
    }
  }

  var descriptor: Int32 { socket.number }

  func send(_ packet: [UInt8]) throws(RadioError) {
    // A few bytes, and an answer before the next packet: they always fit into the socket's buffer.
    let count = Glibc.send(socket.number, packet, packet.count, Int32(MSG_NOSIGNAL))
    guard count == packet.count else { throw .lost(radio: name, reason: SystemError("send").reason) }
  }

  func receive(
    until deadline: Instant?, _ interruption: Interruption?
  ) throws(RadioError) -> HCIPacket? {
    while true {
      do {
        if let event = try deframer.nextEvent() { return .event(event) }
      } catch {
        throw .garbled(radio: name, offset: error.offset, byte: error.byte)
      }
      emptied = drained
      let check = Instant.now + longestWait
      if try waitReadable(socket.number, of: name, until: min(deadline ?? check, check), interruption) {
        try readChunk()
      } else if let silence = try timeOfSilence(socket.number, of: name, interruption) {
        drained = silence
        emptied = silence
        if let deadline, deadline <= silence { return nil }
      }
    }
  }

  private func readChunk() throws(RadioError) {
    let start = Instant.now
    let count = withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
      let count = recv(socket.number, buffer.baseAddress, buffer.count, 0)
      deframer.append(UnsafeRawBufferPointer(rebasing: buffer[..<max(count, 0)]))
      if count < buffer.count { drained = start }
      return count
    }
    if count == 0 { throw .lost(radio: name, reason: "the controller closed the connection") }
    if count < 0, errno != EAGAIN, errno != EINTR { throw .lost(radio: name, reason: SystemError("read").reason) }
  }
}
