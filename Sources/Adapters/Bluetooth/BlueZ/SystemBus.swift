import CSystemd
import Glibc
import SystemIO

/// A connection to the system bus (sd-bus(3)), closed on `deinit`.
final class SystemBus {
  private let library: SDBus
  private let bus: OpaquePointer
  private let interruption: Interruption?
  /// Messages that came while a call waited for its reply.
  private var setAside: ArraySlice<BusMessage> = []
  /// Answers other programs' calls; returns false if there is no answer.
  private let answer: (SystemBus, BusMessage) -> Bool
  /// When there was last nothing to read: everything that is read now came later.
  private(set) var emptied = Instant.now

  init(
    _ interruption: Interruption?, answer: @escaping (SystemBus, BusMessage) -> Bool = { _, _ in false }
  ) throws(BusError) {
    self.interruption = interruption
    self.answer = answer
    do { library = try SDBus() } catch { throw .unavailable(reason: error.reason) }
    var pointer: OpaquePointer?
    let status = library.openSystem(&pointer)
    guard status >= 0, let pointer else { throw .unavailable(reason: Self.reason(status)) }
    bus = pointer
  }

  // Nothing waits to be sent: each call had its reply, or was abandoned.
  deinit { _ = library.closeUnref(bus) }

  /// Calls a method and waits for its reply.
  ///
  /// - Parameter arguments: appends the arguments.
  func call(
    _ member: String, of interface: String, at path: String, on destination: String, timeout: Duration = .seconds(5),
    _ arguments: (BusMessage) -> Void = { _ in }
  ) throws(BusError) -> BusMessage {
    var pointer: OpaquePointer?
    let status = library.messageNewMethodCall(bus, &pointer, destination, path, interface, member)
    guard status >= 0, let pointer else { throw .disconnected(reason: Self.reason(status)) }
    let call = BusMessage(adopting: pointer, library)
    // Only the administrator may start services.
    _ = library.messageSetAutoStart(pointer, 0)
    arguments(call)
    var cookie: UInt64 = 0
    _ = try check(library.send(bus, pointer, &cookie))

    let deadline = Instant.now + timeout
    // Any program may send signals without end.
    while let message = try next(until: deadline) {
      if message.replyCookie == cookie {
        if let failure = message.failure { throw failure }
        return message
      }
      setAside.append(message)
      if deadline <= .now { break }
    }
    throw .noReply
  }

  /// Replies to a call.
  func reply(to call: BusMessage, _ arguments: (BusMessage) -> Void = { _ in }) {
    var pointer: OpaquePointer?
    guard library.messageNewMethodReturn(call.pointer, &pointer) >= 0, let pointer else { return }
    let reply = BusMessage(adopting: pointer, library)
    arguments(reply)
    _ = library.send(bus, pointer, nil)
  }

  /// Waits for the next message.
  ///
  /// - Returns: nil when the deadline passed and no message waits.
  func receive(until deadline: Instant?) throws(BusError) -> BusMessage? {
    if let message = setAside.popFirst() { return message }
    return try next(until: deadline)
  }

  private func next(until deadline: Instant?) throws(BusError) -> BusMessage? {
    while true {
      if interruption?.isPending == true { throw .interrupted }
      var pointer: OpaquePointer?
      // Read before the check: see `timeOfSilence`.
      let start = Instant.now
      let progress = try check(library.process(bus, &pointer))
      if let pointer {
        let message = BusMessage(adopting: pointer, library)
        guard message.isCall else { return message }
        if !answer(self, message) { _ = library.replyMethodErrno(pointer, ENOSYS, nil) }
        continue
      }
      if progress > 0 { continue }
      if setAside.isEmpty { emptied = start }
      let ready: [Bool]
      do {
        ready = try waitReadable([library.getDescriptor(bus), interruption?.number ?? -1], until: deadline)
      } catch {
        throw .disconnected(reason: error.reason)
      }
      if !ready.contains(true) { return nil }
    }
  }

  private func check(_ result: Int32) throws(BusError) -> Int32 {
    guard result >= 0 else { throw .disconnected(reason: Self.reason(result)) }
    return result
  }

  private static func reason(_ result: Int32) -> String { SystemError("ask", code: -result).reason }
}
