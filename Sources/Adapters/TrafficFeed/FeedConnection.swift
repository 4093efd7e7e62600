package import Domain
import Encoding
package import SystemIO
package import Traffic

/// A connection to a bridge. `stepctl-traffic` speaks WebSocket for it, in a separate process.
///
/// - Threads: one thread uses it.
/// - Latency: `next` waits until its deadline; an interruption ends it at once.
/// - Ownership: the program ends with this object.
package final class FeedConnection {
  /// Files with the identity of the client, and with the authorities for the bridge.
  package struct Credentials: Equatable, Sendable {
    /// Certificates of authorities; nil for the system's.
    package var authorities: String?
    package var certificate: String?
    package var key: String?

    package init(authorities: String?, certificate: String?, key: String?) {
      self.authorities = authorities
      self.certificate = certificate
      self.key = key
    }
  }

  package enum Event: Equatable, Sendable {
    case connected
    /// A frame, its arrival time, and how many frames were dropped before it.
    case frame([UInt8], received: UnixTime, dropped: Int)
  }

  private let helper: HelperProcess
  private let name: String
  private var assembly = FrameAssembly()
  private var isConnected = false

  /// - Parameters:
  ///   - interruption: ends waits.
  ///   - program: the path of stepctl-traffic, if it is not beside this program.
  package init(
    host: String, port: UInt16, path: String, _ credentials: Credentials, interruption: Interruption? = nil,
    program: String? = nil
  ) throws(FeedError) {
    name = "\(HostPort(host: host, port: port))"
    let files = [credentials.authorities, credentials.certificate, credentials.key]
    do {
      // The library that reads the files does not say which one it cannot read.
      for file in files { if let file { _ = try Files.readRegular(file) } }
    } catch {
      throw .system(error)
    }
    let arguments = [host, "\(port)", path] + files.map { $0 ?? "" }
    let found: String
    do { found = if let program { program } else { try ChildProcess.program("stepctl-traffic") } } catch {
      throw .noProgram
    }
    do {
      helper = try HelperProcess(found, arguments: arguments, interruption: interruption)
    } catch .system(let error) {
      throw .system(error)
    } catch {
      throw .gaveUp(name)
    }
  }

  /// Sends the client's location. The bridge sends nothing before, and stops 5 s after the last location.
  package func tell(_ location: ClientLocation) throws(FeedError) {
    do { try helper.send(location.json.bytes) } catch { throw failure(error) }
  }

  /// The next event; nil at the deadline.
  package func next(until deadline: Instant?) throws(FeedError) -> Event? {
    while true {
      let body: [UInt8]
      do {
        guard let next = try helper.next(until: deadline) else { return nil }
        body = next
      } catch {
        throw failure(error)
      }
      if let event = try event(body) { return event }
    }
  }

  /// Readable when there is an event. The caller must not read or close it.
  package var descriptor: Int32 { helper.descriptor }

  /// The events that have arrived: for an `EventLoop`, when `descriptor` is readable.
  package func received() throws(FeedError) -> [Event] {
    let bodies: [[UInt8]]
    do { bodies = try helper.received() } catch { throw failure(error) }
    var events: [Event] = []
    for body in bodies { if let event = try event(body) { events.append(event) } }
    return events
  }

  /// - Returns: nil for a partial message.
  private func event(_ body: [UInt8]) throws(FeedError) -> Event? {
    do {
      // It connects once, and then there are frames: only frames are dropped if nobody reads them in time.
      switch try FeedMessage(body: body) {
      case .connected:
        guard !isConnected else { throw FeedError.gaveUp(name) }
        isConnected = true
        return .connected
      case .part(let part):
        guard isConnected else { throw FeedError.gaveUp(name) }
        try assembly.take(part)
        return nil
      case .frame(let received, let dropped, let rest):
        guard isConnected else { throw FeedError.gaveUp(name) }
        return .frame(
          try assembly.finish(rest), received: UnixTime(microseconds: Int64(received)), dropped: Int(dropped))
      case .ended(let reason, let text): throw FeedError.ended(reason, name, text)
      }
    } catch let error as FeedError {
      throw error
    } catch {
      throw .gaveUp(name)
    }
  }

  private func failure(_ error: HelperProcess.Failure) -> FeedError {
    switch error {
    case .interrupted: .interrupted
    case .system(let error): .system(error)
    case .ended, .silent, .malformed: .gaveUp(name)
    }
  }
}

/// Why there is no feed. Each case names the bridge.
package enum FeedError: Failure, Equatable {
  case system(SystemError)
  case ended(FeedMessage.Reason, String, String)
  /// The program that speaks WebSocket ended, or sent an impossible message.
  case gaveUp(String)
  case noProgram
  case interrupted

  package var description: String {
    switch self {
    case .system(let error): error.description
    case .ended(.refused, let name, let text): "\(name): no connection to the bridge: \(text)"
    case .ended(.closed, let name, _): "\(name): the bridge closed the connection"
    case .ended(.binary, let name, _): "\(name): the bridge sent a frame that is not text"
    case .ended(.tooLong, let name, _): "\(name): the bridge sent a frame of more than 1 MiB"
    case .ended(.setup, let name, _): "\(name): TLS cannot be set up with these certificates and this key"
    case .gaveUp(let name): "\(name): stepctl-traffic, which speaks with the bridge, has ended"
    case .noProgram:
      "stepctl-traffic, which speaks with bridges, is missing: install it beside stepctl, or in ../libexec/stepctl"
    case .interrupted: "interrupted"
    }
  }

  package var exitStatus: ExitStatus {
    switch self {
    case .system(let error): error.exitStatus
    case .ended(let reason, _, _):
      switch reason {
      case .refused, .closed: .unavailable
      case .binary, .tooLong: .badData
      case .setup: .configuration
      }
    case .gaveUp, .noProgram: .unavailable
    case .interrupted: .failure
    }
  }

  package var isInterruption: Bool { self == .interrupted }
}
