import Domain
import Encoding
import Glibc
import Synchronization
import SystemIO
import Traffic
import TrafficFeed

/// `stepctl-traffic`: libwebsockets in a separate process.
///
/// As a client, its arguments are a bridge's host, port and path, and the files with the authorities' certificates, its
/// own certificate and its key; each file may be empty. It sends standard input to the bridge, only the newest message.
/// It writes the bridge's messages to standard output; if they are not read in time, only the newest.
///
/// As a bridge, its arguments are `serve`, an address, a port, the files with the authorities' certificates, its own
/// certificate and its key, the map, and the authorities' lists of revoked certificates; address, map and lists may be
/// empty. It publishes the frames from standard input.
@main
enum TrafficProgram {
  /// Bytes of address space and seconds of processor time: a day of a busy road takes a tenth of the time.
  private static let limits = (memory: UInt(1 << 30), seconds: UInt(50_000))

  // Never closed before the process ends.
  private static let input = Descriptor(adopting: STDIN_FILENO)
  private static let output = Descriptor(adopting: STDOUT_FILENO)
  private static let queue = FeedQueue()

  static func main() { exit(run(ProgramArguments.typed)) }

  private static func run(_ arguments: [String]) -> Int32 {
    if arguments.first == "serve" { return serve(Array(arguments.dropFirst())) }
    guard arguments.count == 6, let port = UInt16(arguments[1]) else { return EX_USAGE }
    guard (try? Confinement.limit(memory: limits.memory, seconds: limits.seconds)) != nil else { return EXIT_FAILURE }
    ignoreSignals()
    // The library would use a proxy from these variables, which nobody asked for.
    for variable in ["http_proxy", "https_proxy", "socks_proxy", "no_proxy"] {
      unsetenv(variable)
      unsetenv(variable.uppercased())
    }
    let files = arguments[3...].map { $0.isEmpty ? nil : $0 }
    guard
      let socket = FeedSocket(
        host: arguments[0], port: port, path: arguments[2], authorities: files[0], certificate: files[1], key: files[2],
        queue: queue)
    else {
      try? output.write(Frames.frame(FeedMessage.ended(.setup, "").body))
      return EXIT_SUCCESS
    }
    // The key has already been read.
    guard (try? Confinement.dropPrivileges()) != nil else { return EXIT_FAILURE }
    let wake = socket.wake
    do {
      try DetachedThread.start { readInput(wake) }
      try DetachedThread.start { writeOutput() }
    } catch {
      return EXIT_FAILURE
    }
    let reason = socket.run()
    queue.end(reason)
    // The writer or its reader ends the process.
    while true { pause() }
  }

  /// A terminal sends these signals to the whole process group. They are for stepctl, which then closes this input.
  private static func ignoreSignals() {
    signal(SIGINT, SIG_IGN)
    signal(SIGHUP, SIG_IGN)
    signal(SIGPIPE, SIG_IGN)
  }

  // MARK: - Bridge

  private static func serve(_ arguments: [String]) -> Int32 {
    guard arguments.count == 7, let port = UInt16(arguments[1]) else { return EX_USAGE }
    // A bridge runs for months.
    guard (try? Confinement.limit(memory: limits.memory, seconds: .max)) != nil else { return EXIT_FAILURE }
    // Each connection needs a descriptor; by default a process has 1024.
    var files = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files) == 0 {
      files.rlim_cur = min(files.rlim_max, rlim_t(BridgeServer.mostConnections) + 64)
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
    }
    ignoreSignals()
    // A reader that does not read must not delay the connected peers.
    _ = fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK)
    func say(_ message: BridgeMessage) { try? output.write(Frames.frame(message.body)) }
    func fail(_ reason: BridgeMessage.Reason, _ text: String = "") -> Int32 {
      say(.failed(reason, text))
      return EXIT_SUCCESS
    }
    let map: RoadMap?
    let revoked: [UInt8]?
    do {
      map = try arguments[5].isEmpty ? nil : RoadMap(parsing: Files.readRegular(arguments[5]))
      revoked = try arguments[6].isEmpty ? nil : Files.readRegular(arguments[6])
    } catch {
      return fail(.setup, "; \(error)")
    }
    let address = arguments[0].isEmpty ? nil : arguments[0]
    // The library does not say why it could not use the port.
    let place: ListeningPlace
    do throws(ListeningPlace.Unavailable) { place = try ListeningPlace(address, port) } catch {
      return fail(error.reason, error.text)
    }
    guard
      let server = BridgeServer(
        at: place, port: port, authorities: arguments[2], certificate: arguments[3], key: arguments[4], map: map,
        input: Descriptor(adopting: STDIN_FILENO), say: say)
    else { return fail(.setup) }
    if let revoked, !server.revoke(revoked) { return fail(.setup, "; \(arguments[6]): not a revocation list, as PEM") }
    // The key has already been read.
    guard (try? Confinement.dropPrivileges()) != nil else { return EXIT_FAILURE }
    say(.listening(server.port))
    server.run()
    return EXIT_FAILURE
  }

  // MARK: - Client

  /// Takes the messages of standard input until it ends, then ends the process.
  private static func readInput(_ wake: FeedSocket.Wake) -> Never {
    var frames = Frames(longest: ClientLocation.longest)
    var chunk = [UInt8](repeating: 0, count: 65536)
    while let count = try? chunk.withUnsafeMutableBytes({ try input.read(into: $0) }), count > 0 {
      frames.append(chunk[..<count])
      do {
        while let message = try frames.next() { wake.send(message) }
      } catch {
        break
      }
    }
    exit(EXIT_SUCCESS)
  }

  private static func writeOutput() {
    while let messages = queue.next() {
      for message in messages where (try? output.write(Frames.frame(message.body))) == nil { exit(EXIT_SUCCESS) }
    }
    exit(EXIT_SUCCESS)
  }
}

/// The address at which to listen, as a number: a computer need not have every address of a name.
struct ListeningPlace {
  /// Nil for all of this computer's.
  let address: String?
  let isIPv4: Bool

  struct Unavailable: Error {
    let reason: BridgeMessage.Reason
    /// The address, the port and the cause.
    let text: String
  }

  /// Takes the first address of the name that this computer has. All addresses are those of IPv6 and IPv4 together
  /// where the kernel has both.
  init(_ name: String?, _ port: UInt16) throws(Unavailable) {
    var hints = addrinfo()
    hints.ai_flags = AI_PASSIVE
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(name, String(port), &hints, &found)
    guard status == 0, let first = found else {
      throw Unavailable(reason: .port, text: "\(name ?? ""): \(String(cString: gai_strerror(status)))")
    }
    defer { freeaddrinfo(found) }
    var all = Array(sequence(first: first, next: \.pointee.ai_next)).map(\.pointee)
    if name == nil { all.sort { $0.ai_family == AF_INET6 && $1.ai_family != AF_INET6 } }
    var last = Unavailable(reason: .port, text: "")
    for candidate in all {
      let number = name.map { Self.number(of: candidate) ?? $0 }
      guard let error = Self.error(of: candidate) else {
        (address, isIPv4) = (number, candidate.ai_family == AF_INET)
        return
      }
      let place = number.map { HostPort(host: $0, port: port).description } ?? "port \(port)"
      last = Unavailable(reason: error.code == EACCES ? .forbidden : .port, text: "\(place): \(error.reason)")
      // The computer may have another address of this name, or IPv4 alone.
      if ![EAFNOSUPPORT, EADDRNOTAVAIL].contains(error.code) { break }
    }
    throw last
  }

  /// - Returns: nil if the address can be used.
  private static func error(of candidate: addrinfo) -> SystemError? {
    let number = socket(candidate.ai_family, Int32(SOCK_STREAM.rawValue), 0)
    if number < 0 { return SystemError("listen") }
    let socket = Descriptor(adopting: number)
    var isOn: Int32 = 1
    // As the library does: closed connections do not block the port.
    setsockopt(socket.number, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<Int32>.size))
    guard bind(socket.number, candidate.ai_addr, candidate.ai_addrlen) == 0, listen(socket.number, 1) == 0 else {
      return SystemError("listen")
    }
    return nil
  }

  private static func number(of candidate: addrinfo) -> String? {
    var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
    guard
      getnameinfo(candidate.ai_addr, candidate.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
    else { return nil }
    return text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  }
}

/// The messages to write: the newest frame, and before it the messages that must not be dropped.
final class FeedQueue: Sendable {
  private struct State {
    var connected = false
    var frame: (bytes: [UInt8], received: UInt64)?
    var dropped: UInt32 = 0
    var end: FeedMessage?
    var isOver = false
  }

  private let state = Mutex(State())
  private let signal = Semaphore()

  func connect() {
    state.withLock { $0.connected = true }
    signal.post()
  }

  func put(_ frame: [UInt8], received: UInt64) {
    let isFirst = state.withLock { state in
      let isFirst = state.frame == nil
      if !isFirst { state.dropped &+= 1 }
      state.frame = (frame, received)
      return isFirst
    }
    if isFirst { signal.post() }
  }

  func end(_ message: FeedMessage) {
    state.withLock { $0.end = message }
    signal.post()
  }

  /// Waits for the next messages to write; nil after the end.
  func next() -> [FeedMessage]? {
    while true {
      signal.wait()
      let messages: [FeedMessage]? = state.withLock { state in
        guard !state.isOver else { return nil }
        var messages: [FeedMessage] = []
        if state.connected {
          messages.append(.connected)
          state.connected = false
        }
        if let frame = state.frame {
          messages += FeedMessage.messages(frame.bytes, received: frame.received, dropped: state.dropped)
          state.frame = nil
          state.dropped = 0
        }
        if let end = state.end {
          messages.append(end)
          state.isOver = true
          signal.post()
        }
        return messages
      }
      guard let messages else { return nil }
      if !messages.isEmpty { return messages }
    }
  }
}

/// Whether the other side may end a connection with this payload: nothing, or a status and a reason (RFC 6455 5.5.1 and
/// 7.4; the statuses from 1012 to 1014 are IANA's). The library would reply with the same status even if it does not
/// exist.
func isFarewell(_ payload: UnsafeRawBufferPointer) -> Bool {
  if payload.isEmpty { return true }
  guard payload.count >= 2 else { return false }
  switch UInt16(payload[0]) << 8 | UInt16(payload[1]) {
  case 1000...1003, 1007...1014, 3000...4999: return String(validating: payload[2...], as: UTF8.self) != nil
  default: return false
  }
}

/// Counts posts that were not waited for yet (sem_overview(7)). Unchecked, because the compiler does not know that any
/// thread may call sem_post(3) and sem_wait(3).
final class Semaphore: @unchecked Sendable {
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  func post() { sem_post(semaphore) }
  func wait() { while sem_wait(semaphore) == -1, errno == EINTR {} }
}
