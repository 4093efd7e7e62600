import Configuration
import Domain
import Encoding
import Glibc
import StepController
import StepProtocol
import Synchronization
import SystemIO
import Traffic
import TrafficFeed

/// What `stepd` writes to standard error: one line an event, written on a thread of its own.
///
/// Under systemd a line begins with its priority (sd-daemon(3), `SD_NOTICE` and so on), which journald takes off.
final class Log {
  enum Priority: Int {
    case error = 3
    case warning = 4
    case notice = 5
    case info = 6
    case debug = 7
  }

  private let isVerbose: Bool
  private let output: LogOutput
  private let writer: Worker<String>
  private var repetitions: [String: Repetition] = [:]

  /// Of lines that anybody can bring about as often as they like.
  private struct Repetition {
    let written: ContinuousClock.Instant
    var unwritten = 0
  }

  /// - Parameter descriptor: lent.
  init(isVerbose: Bool, to descriptor: Int32 = STDERR_FILENO) throws {
    self.isVerbose = isVerbose
    output = LogOutput(descriptor)
    writer = try Worker { [output] lines in for line in lines { output.write(line) } }
  }

  /// Waits a second at most for what was logged to be written.
  func finish() { writer.finish(within: .seconds(1)) }

  /// - Parameter text: one line; whatever would make more of it, or steer a terminal, is shown and not obeyed.
  func write(_ priority: Priority, _ text: String) {
    if priority == .debug, !isVerbose { return }
    guard output.admit() else { return }
    writer.post(output.line(priority, text))
  }

  /// Whoever sends the same thing over and over must not be able to fill the disk with our lines about it.
  ///
  /// - Parameter kind: what counts as the same: nothing that whoever sends it can choose.
  private func writeOnceASecond(_ priority: Priority, _ kind: String, _ text: String, count: Int = 1) {
    let now = ContinuousClock.now
    let last = repetitions[kind]
    if let last, now - last.written < .seconds(1) {
      repetitions[kind]?.unwritten += count
      return
    }
    repetitions[kind] = Repetition(written: now)
    let more = (last?.unwritten ?? 0) + count - 1
    write(priority, more > 0 ? "\(text) (and \(more) more since the last such line)" : text)
  }

  func write(_ event: Controller.Event) {
    switch event {
    case .unauthenticated(let step, let error):
      write(step, .notRiders(error), count: 1)
    case .refused(let step, let code, let rider):
      // A copy of an old command is refused as well as a new one, and by whose it was.
      let text = "\(step): refused “\(rider)”: \(code.rawValue)"
      writeOnceASecond(.notice, text, text)
    case .answered(let step, let rider):
      let text = "\(step): answered “\(rider)”"
      if isVerbose { writeOnceASecond(.debug, text, text) }
    case .stopped(let step, let rider):
      let text = "\(step): stopped by “\(rider)”"
      writeOnceASecond(.notice, text, text)
    case .retracts(let step):
      write(.warning, "\(step): closes, because the vehicle moves")
    case .lost:
      // Where it is read the reason is known, and written.
      break
    case .began(let step, let target, let rider):
      write(.notice, "\(step): \(target.rawValue) for “\(rider)”")
    case .ended(let step, let position):
      write(.notice, "\(step): is \(position == .close ? "closed" : position.rawValue)")
    case .failed(let step, let fault, let reason):
      write(.error, "\(step): fault \(fault.rawValue): \(reason)")
    case .noticed(let sequence):
      write(.notice, "the operator's notice \(sequence) is in force")
    case .noticeIgnored(let error):
      writeOnceASecond(.warning, "notice", "ignored a notice: \(error)")
    case .noticeNotJournaled(let reason):
      write(.error, "the operator's notice is not in force: the journal cannot be written: \(reason)")
    case .unwatched(let step, let reason):
      write(.notice, "\(step): opens unwatched: \(reason.rawValue)")
    case .farRoad:
      write(
        .warning,
        "everything in the traffic feed is more than 50 km away: are latitude and longitude swapped ([guard] axes)?")
    case .notJournaled(let step, let reason):
      write(.error, "\(step): the journal cannot be written: \(reason)")
    }
  }

  func write(_ step: StepID, _ reason: CommandOpener.Reason, count: Int) {
    switch reason {
    case .notRiders(let error):
      let text = "\(step): ignored a message that is no rider's command: \(error)"
      writeOnceASecond(.warning, "rubbish", text, count: count)
    case .excess(let rider):
      let text = "ignored a message of “\(rider)”, who sends more than \(DeviceAllowance.perSecond) a second"
      writeOnceASecond(.warning, text, text, count: count)
    }
  }

  func write(_ report: EventSpool.Report) {
    switch report {
    case .lost(let count, let reason):
      writeOnceASecond(.warning, "lost events", "\(count) events for the operator are lost: \(reason)")
    case .dropped(let count):
      write(.warning, "the operator has not fetched \(EventSpool.capacity) events: the oldest \(count) are dropped")
    case .setAside(let path, let place, let reason):
      write(.error, "\(path) is now \(place), and the events begin again: \(reason)")
    }
  }

  func write(_ event: BeaconSender.Event, of plan: BeaconPlan) {
    switch event {
    case .sending: write(.notice, "\(plan.names): on the air with \(plan.radio)")
    case .failed(let error): write(.warning, "\(plan.names): off the air: \(error); trying again")
    }
  }

  func write(_ event: Ear.Event, of ear: Ear) {
    switch event {
    case .listening: write(.notice, "\(ear.step): listens with \(ear.radio)")
    case .failed(let error): write(.warning, "\(ear.step): does not listen: \(error); trying again")
    case .heard: break
    }
  }
}

extension Log {
  func write(_ event: RoadListener.Event, of listener: RoadListener) {
    switch event {
    case .connected: write(.info, "watches the road with \(listener.feed.address)")
    case .lost(let reason?): write(.warning, "does not see the road: \(reason); trying again")
    case .lost(nil), .frame: break
    }
  }
}

/// Where the log's lines go. Those that nobody takes are lost, and counted in the next.
private final class LogOutput: Sendable {
  /// Lines that may wait. A disk that does not answer must not cost more memory than this.
  private static let capacity = 256

  private let descriptor: Int32
  /// Whether it is systemd's journal (systemd.exec(5), `JOURNAL_STREAM`). The variable alone does not say so: what is
  /// started from a service, as a terminal is on many desktops, inherits it.
  private let isJournal: Bool
  private let count = Mutex((waiting: 0, lost: 0))

  init(_ descriptor: Int32) {
    self.descriptor = descriptor
    var status = stat()
    isJournal =
      getenv("JOURNAL_STREAM").map { stream in
        fstat(descriptor, &status) == 0 && String(cString: stream) == "\(status.st_dev):\(status.st_ino)"
      } ?? false
  }

  func admit() -> Bool {
    count.withLock { count in
      guard count.waiting < Self.capacity else {
        count.lost += 1
        return false
      }
      count.waiting += 1
      return true
    }
  }

  func line(_ priority: Log.Priority, _ text: String) -> String {
    (isJournal ? "<\(priority.rawValue)>" : "stepd: ") + printable(text)
  }

  /// Writes a line where that takes no waiting, as it does where a pager has stopped reading.
  func write(_ line: String) {
    var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    let isTaken = poll(&entry, 1, 0) == 1 && entry.revents & Int16(POLLOUT) != 0
    let lost = count.withLock { count in
      count.waiting -= 1
      let lost = count.lost
      count.lost = isTaken ? 0 : lost + 1
      return lost
    }
    guard isTaken else { return }
    let told = lost > 0 ? "\(line) (lines lost before this one: \(lost))" : line
    // A pipe that can be written takes PIPE_BUF bytes at once (pipe(7)): 4096, and these are 4001 at most.
    let bytes = Array((String(told.unicodeScalars.prefix(1000)) + "\n").utf8)
    _ = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
  }
}
