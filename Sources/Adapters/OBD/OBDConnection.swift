package import Domain
import Glibc
package import SystemIO

/// A connection to an adapter that asks a vehicle for its speed.
///
/// - Threads: one thread uses it.
/// - Latency: only connecting and `next` wait; an interruption ends both at once.
package final class OBDConnection {
  private let address: OBDAddress
  private let line: Descriptor
  private let interruption: Interruption
  private var dialogue: OBDDialogue
  private var events: [OBDDialogue.Event] = []

  /// - Throws: `OBDError`, `SystemError`.
  package init(_ address: OBDAddress, _ interruption: Interruption) throws {
    (self.address, self.interruption) = (address, interruption)
    switch address {
    case .serial(let path, let speed):
      line = try OBDConnection.open(path)
      // The lock ends with the descriptor, however this process ends.
      let number = line.number
      guard flock(number, LOCK_EX | LOCK_NB) == 0 else { throw OBDError.inUse(path) }
      try SerialLine.prepare(line, speed: speed, path)
    case .network(let address):
      do throws(Connecting.Failure) {
        line = try Connecting.connect(host: address.host, port: address.port, interruption)
      } catch {
        guard let reason = error.reason else { throw OBDError.interrupted }
        throw OBDError.unreachable(address, reason)
      }
    }
    dialogue = OBDDialogue(at: .now)
  }

  /// Throws if there is no such adapter to be opened. It is neither connected nor taken from another program.
  package static func check(_ address: OBDAddress) throws {
    if case .serial(let path, _) = address { _ = try open(path) }
  }

  private static func open(_ path: String) throws -> Descriptor {
    let line = try Descriptor.open(path, O_RDWR | O_NOCTTY | O_NONBLOCK)
    guard isatty(line.number) == 1 else { throw OBDError.notATerminal(path) }
    return line
  }

  /// Waits for what the adapter says next.
  ///
  /// - Throws: `OBDError`, `SystemError`.
  package func next() throws -> OBDDialogue.Event {
    while events.isEmpty {
      let ready = try waitReadable([line.number, interruption.number], until: dialogue.deadline)
      if ready[1] { throw OBDError.interrupted }
      if ready[0] { events += try dialogue.received(read(), at: .now) }
      try dialogue.passed(at: .now)
      let output = dialogue.takeOutput()
      // A few bytes, and one line at a time: they fit into what the system keeps.
      if !output.isEmpty { try line.write(output, address.text) }
    }
    return events.removeFirst()
  }

  private func read() throws -> ArraySlice<UInt8> {
    var chunk = [UInt8](repeating: 0, count: 256)
    let number = line.number
    let count = Glibc.read(number, &chunk, chunk.count)
    if count < 0, errno == EAGAIN || errno == EINTR { return [] }
    // A line whose other end has gone says EIO.
    guard count > 0 else { throw OBDError.lost }
    return chunk[..<count]
  }
}

/// Why an adapter tells no speed.
package enum OBDError: Failure, Equatable {
  case notATerminal(String)
  case inUse(String)
  case unreachable(HostPort, String)
  case lost
  /// It does not answer.
  case silent
  /// It answers otherwise than an ELM327.
  case unusable(String)
  case interrupted

  package var description: String {
    switch self {
    case .notATerminal(let path): "\(path) is not a serial line"
    case .inUse(let path): "another program uses \(path)"
    case .unreachable(let address, let reason): "cannot connect to \(address): \(reason)"
    case .lost: "the adapter has gone"
    case .silent: "the adapter does not answer"
    case .unusable(let text): "the adapter does not answer as an ELM327 does: \(text)"
    case .interrupted: "interrupted"
    }
  }

  package var exitStatus: ExitStatus {
    switch self {
    case .notATerminal: .noInput
    case .inUse, .unreachable, .lost, .silent: .unavailable
    case .unusable: .badData
    case .interrupted: .failure
    }
  }

  package var isInterruption: Bool { self == .interrupted }
}
