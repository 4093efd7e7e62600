import CLinux
import Glibc

/// A name that one program of this computer can hold, and that tells others about its holder.
///
/// It is a listening socket in the abstract namespace (unix(7)). Every program of the same network namespace sees it,
/// whatever its user, its folder and its view of the file system are. The kernel frees the name when the holder ends,
/// however it ends. Anybody may take a free name, so a name alone proves nothing: see `Holder`.
///
/// The holder has a thread that answers one question at a time, and fifty a second at the most: whoever asks again and
/// again takes no processor from the holder's other threads.
package final class HeldName: Sendable {
  /// Who holds a name.
  package struct Holder: Sendable, Equatable {
    /// From the kernel. Nil if it could not be asked, or is in another PID namespace.
    package let process: Int32?
    /// From the kernel, as this program's user namespace has it; nil if it could not be asked.
    package let user: UInt32?
    /// What it says; nil if it does not answer in time. Anybody can say anything.
    package let answer: [UInt8]?

    package init(process: Int32?, user: UInt32?, answer: [UInt8]?) {
      (self.process, self.user, self.answer) = (process, user, answer)
    }
  }

  package enum Attempt {
    case taken(HeldName)
    case held(by: Holder)
  }

  private final class Listener: Sendable {
    let socket: Descriptor
    init(_ socket: consuming Descriptor) { self.socket = socket }
  }

  /// The longest question and the longest answer, bytes.
  private static let maximumSize = 4096
  private static let pause: useconds_t = 20_000

  private let thread: WorkerThread

  /// Takes a name. If somebody else has it, asks them who they are.
  ///
  /// - Parameters:
  ///   - name: at most 106 bytes.
  ///   - question: what a holder is asked, not empty.
  ///   - patience: how long a holder may take to answer.
  ///   - answer: what this program says when it is asked. It runs on another thread.
  package static func take(
    _ name: String, asking question: [UInt8], within patience: Duration = .seconds(1),
    answer: @escaping @Sendable (_ question: [UInt8]) -> [UInt8]
  ) throws(SystemError) -> Attempt {
    let deadline = Instant.now + patience
    while true {
      if let own = try HeldName(name, answer: answer) { return .taken(own) }
      if let holder = try ask(name, question, until: deadline) { return .held(by: holder) }
      // It has ended meanwhile, or it does not listen yet.
      guard Instant.now < deadline else { return .held(by: Holder(process: nil, user: nil, answer: nil)) }
      usleep(pause)
    }
  }

  /// - Returns: nil if somebody has the name.
  package init?(
    _ name: String, answer: @escaping @Sendable (_ question: [UInt8]) -> [UInt8]
  ) throws(SystemError) {
    let address = try LocalAddress("@\(name)", name)
    let listener = Listener(try address.socket(SOCK_SEQPACKET))
    let number = listener.socket.number
    if address.with({ bind(number, $0, $1) }) == -1 {
      if errno == EADDRINUSE { return nil }
      throw SystemError("use the name", name)
    }
    _ = try check("listen at", name) { listen(number, 16) }
    thread = try WorkerThread()
    try thread.start { [end = thread.stop] in
      while let ready = try? waitReadable([listener.socket.number, end.number], until: nil), !ready[1] {
        Self.serve(listener.socket, answer)
        usleep(Self.pause)
      }
    }
  }

  deinit { close() }

  /// Ends the answers. The name is free a moment later.
  package func close() { thread.close() }

  private static func serve(
    _ socket: borrowing Descriptor, _ answer: (_ question: [UInt8]) -> [UInt8]
  ) {
    let number = accept4(socket.number, nil, nil, Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue))
    guard number >= 0 else { return }
    let peer = Descriptor(adopting: number)
    // Who asks sends its question right after it has connected.
    guard let question = receive(peer, until: .now + .milliseconds(50)) else { return }
    let bytes = answer(question)
    _ = send(number, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }

  /// Asks who holds a name, without taking it.
  ///
  /// - Returns: nil if nobody listens at it.
  package static func ask(
    _ name: String, _ question: [UInt8], until deadline: Instant
  ) throws(SystemError) -> Holder? {
    let address = try LocalAddress("@\(name)", name)
    let socket = try address.socket(SOCK_SEQPACKET)
    let number = socket.number
    // EAGAIN: too many ask already.
    if address.with({ connect(number, $0, $1) }) == -1 { return nil }
    var (process, user) = (pid_t(), uid_t())
    _ = try check("ask", name) { peer_of_socket(number, &process, &user) }
    _ = send(number, question, question.count, Int32(MSG_NOSIGNAL))
    return Holder(process: process > 0 ? process : nil, user: user, answer: receive(socket, until: deadline))
  }

  /// - Returns: nil if nothing comes, or nothing but the end.
  private static func receive(_ socket: borrowing Descriptor, until deadline: Instant) -> [UInt8]? {
    let number = socket.number
    guard (try? waitReadable([number], until: deadline))?[0] == true else { return nil }
    var bytes = [UInt8](repeating: 0, count: maximumSize)
    let count = recv(number, &bytes, bytes.count, 0)
    return count > 0 ? Array(bytes.prefix(count)) : nil
  }
}
