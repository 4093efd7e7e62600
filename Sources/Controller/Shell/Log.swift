import Encoding
import Glibc
import Domain
import StepController
import StepProtocol

/// What `stepd` writes to standard error: one line an event, each at once.
///
/// Under systemd a line begins with its priority (sd-daemon(3), `SD_NOTICE` and so on), which journald takes off.
struct Log {
  enum Priority: Int {
    case error = 3
    case warning = 4
    case notice = 5
    case info = 6
    case debug = 7
  }

  let isVerbose: Bool
  private let isJournal: Bool
  private var repetitions: [String: Repetition] = [:]
  /// Lines that nobody was there to take, since the last that was written.
  private var lost = 0

  /// Of lines that anybody can bring about as often as they like.
  private struct Repetition {
    let written: ContinuousClock.Instant
    var unwritten = 0
  }

  /// - Parameter isJournal: whether standard error goes to systemd's journal.
  init(isVerbose: Bool, isJournal: Bool) {
    self.isVerbose = isVerbose
    self.isJournal = isJournal
  }

  /// Writes a line where that takes no waiting: a reader that has stopped, as a pager, must not stop a motion half-way.
  ///
  /// - Parameter text: one line; whatever would make more of it, or steer a terminal, is shown and not obeyed.
  mutating func write(_ priority: Priority, _ text: String) {
    if priority == .debug, !isVerbose { return }
    var entry = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
    guard poll(&entry, 1, 0) == 1, entry.revents & Int16(POLLOUT) != 0 else {
      lost += 1
      return
    }
    let told = lost > 0 ? "\(text) (lines lost before this one: \(lost))" : text
    lost = 0
    // A pipe that can be written takes PIPE_BUF bytes at once (pipe(7)): 4096, and these are 4009 at most.
    let line = (isJournal ? "<\(priority.rawValue)>" : "stepd: ") + String(printable(told).unicodeScalars.prefix(1000))
    _ = Array((line + "\n").utf8).withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }

  /// Whoever sends the same thing over and over must not be able to fill the disk with our lines about it.
  ///
  /// - Parameter kind: what counts as the same: nothing that whoever sends it can choose.
  private mutating func writeOnceASecond(_ priority: Priority, _ kind: String, _ text: String) {
    let now = ContinuousClock.now
    let last = repetitions[kind]
    if let last, now - last.written < .seconds(1) {
      repetitions[kind]?.unwritten += 1
      return
    }
    repetitions[kind] = Repetition(written: now)
    let more = last.map(\.unwritten) ?? 0
    write(priority, more > 0 ? "\(text) (and \(more) more since the last such line)" : text)
  }

  mutating func write(_ event: Controller.Event) {
    switch event {
    case .unauthenticated(let step, let error):
      writeOnceASecond(.warning, "rubbish", "\(step): ignored a message that is no rider's command: \(error)")
    case .refused(let step, let code, let rider):
      // A copy of an old command is refused as well as a new one, and by whose it was.
      let text = "\(step): refused “\(rider)”: \(code.rawValue)"
      writeOnceASecond(.notice, text, text)
    case .answered(let step, let rider):
      write(.debug, "\(step): answered “\(rider)”")
    case .began(let step, let target, let rider):
      write(.notice, "\(step): \(target.rawValue) for “\(rider)”")
    case .ended(let step, let position):
      write(.notice, "\(step): is \(position == .close ? "closed" : position.rawValue)")
    case .failed(let step, let fault, let reason):
      write(.error, "\(step): fault \(fault.rawValue): \(reason)")
    case .notJournaled(let step, let reason):
      write(.error, "\(step): the journal cannot be written: \(reason)")
    }
  }
}
