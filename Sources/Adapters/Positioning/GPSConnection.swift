package import Domain
import Encoding
import Glibc
package import SystemIO

/// A connection to gpsd, which knows this computer's position. It needs no library: lines of JSON over TCP.
///
/// - Threads: one thread uses it. An `EventLoop` may also do so: watch `descriptor`, and call `received()`.
/// - Latency: only connecting and `next` wait; an interruption ends both at once.
package final class GPSConnection {
  /// The default address of gpsd (gpsd(8)).
  package static let usual = HostPort(host: "localhost", port: 2947)

  private let address: HostPort
  private let socket: Descriptor
  private let interruption: Interruption?
  private var lines: [UInt8] = []
  private var choice = ReceiverChoice()

  package init(_ address: HostPort, _ interruption: Interruption? = nil) throws(GPSError) {
    self.address = address
    self.interruption = interruption
    do throws(Connecting.Failure) {
      socket = try Connecting.connect(host: address.host, port: address.port, interruption)
    } catch {
      guard let reason = error.reason else { throw .interrupted }
      throw .unreachable(address, reason)
    }
    // gpsd_json(5), ?WATCH. A few bytes: they fit into the socket's buffer.
    let request = Array("?WATCH={\"enable\":true,\"json\":true};\n".utf8)
    guard send(socket.number, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
      throw .lost(address)
    }
  }

  /// Readable when gpsd has sent something. The caller must not read or close it.
  package var descriptor: Int32 { socket.number }

  /// The reports that gpsd has sent.
  ///
  /// - Parameter time: now, seconds of a steady clock.
  package func received(at time: Double) throws(GPSError) -> [GPSReport] {
    var chunk = [UInt8](repeating: 0, count: 16_384)
    let count = recv(socket.number, &chunk, chunk.count, 0)
    if count < 0, errno == EAGAIN || errno == EINTR { return [] }
    guard count > 0 else { throw .lost(address) }
    lines += chunk[..<count]
    var reports: [GPSReport] = []
    while let end = lines.firstIndex(of: UInt8(ascii: "\n")) {
      do throws(GPSReport.Malformed) {
        let report = try GPSReport(parsing: lines[..<end], at: time)
        if choice.takes(report, at: time) { reports.append(report) }
      } catch {
        throw .malformed(address, error.reason)
      }
      lines.removeSubrange(...end)
    }
    guard lines.count <= GPSReport.longest else { throw .malformed(address, "a line has no end") }
    return reports
  }
}

/// Why there is no position.
package enum GPSError: Failure, Equatable {
  case unreachable(HostPort, String)
  case lost(HostPort)
  case malformed(HostPort, String)
  case interrupted

  package var description: String {
    switch self {
    case .unreachable(let address, let reason): "cannot connect to gpsd at \(address): \(reason)"
    case .lost(let address): "gpsd at \(address) closed the connection"
    case .malformed(let address, let reason): "what \(address) says is not gpsd's protocol: \(reason)"
    case .interrupted: "interrupted"
    }
  }

  package var exitStatus: ExitStatus {
    switch self {
    case .unreachable, .lost: .unavailable
    case .malformed: .badData
    case .interrupted: .failure
    }
  }

  package var hint: String? {
    switch self {
    case .unreachable: "start gpsd, or say with --gpsd HOST:PORT where it is"
    case .lost, .malformed, .interrupted: nil
    }
  }

  package var isInterruption: Bool { self == .interrupted }
}
