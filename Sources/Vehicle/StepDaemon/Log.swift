import Domain
import Encoding
import Glibc
import StepController
import StepProtocol
import StepdConfiguration
import Synchronization
import SystemIO
import Traffic
import TrafficFeed

/// The log of `stepd`: one line per event, written on a separate thread.
///
/// Lines go to standard error. If that is systemd's journal, they go there directly, with searchable fields. If the
/// journal does not accept that, they go to standard error, each with its priority in front (sd-daemon(3), `SD_NOTICE`
/// and so on), which journald removes.
final class Log {
  enum Priority: Int {
    case error = 3
    case warning = 4
    case notice = 5
    case info = 6
    case debug = 7
  }

  /// A journal field of a line (systemd.journal-fields(7)): words and numbers that only the operator can choose, and no
  /// name of a person.
  struct Field: Sendable, Equatable {
    enum Name: String, CaseIterable, Sendable {
      case step = "STEPCTL_STEP"
      case outcome = "STEPCTL_OUTCOME"
      case code = "STEPCTL_CODE"
      case cause = "STEPCTL_CAUSE"
      case position = "STEPCTL_POSITION"
      case token = "STEPCTL_JTI"
      case method = "STEPCTL_METHOD"
      case zone = "STEPCTL_ZONE"
      /// Metres.
      case distance = "STEPCTL_DISTANCE"
    }

    let name: Name
    let value: String
  }

  private let isVerbose: Bool
  private let output: LogOutput
  private let writer: Worker<LogOutput.Line>
  private var repetitions: [String: Repetition] = [:]

  /// For lines that anybody can cause as often as they like.
  private struct Repetition {
    let written: Instant
    var unwritten = 0
  }

  /// - Parameters:
  ///   - descriptor: not closed by the log.
  ///   - journal: the path of journald's socket.
  init(
    isVerbose: Bool, to descriptor: Int32 = STDERR_FILENO, journal: String = "/run/systemd/journal/socket",
    _ environment: (String) -> String? = { getenv($0).map { String(cString: $0) } }
  ) throws {
    self.isVerbose = isVerbose
    output = LogOutput(descriptor, journal, environment)
    writer = try Worker { [output] lines in for line in lines { output.write(line) } }
  }

  /// Waits, one second at most, until all lines are written.
  func finish() { writer.finish(within: .seconds(1)) }

  /// How many lines could not be written.
  var lost: Int { output.lost }

  /// - Parameter text: one line. Characters that would break the line or control a terminal are shown as text.
  func write(_ priority: Priority, _ text: String, _ outcome: Outcome? = nil) {
    if priority == .debug, !isVerbose { return }
    guard output.admit() else { return }
    writer.post(.init(priority: priority, text: printable(text), fields: outcome?.fields ?? []))
  }

  /// Writes the same thing at most once a second, so that a sender who repeats it cannot fill the disk with log lines.
  ///
  /// - Parameter kind: what counts as the same; the sender must not be able to choose any part of it.
  private func writeOnceASecond(
    _ priority: Priority, _ kind: String, _ text: String, _ outcome: Outcome? = nil, count: Int = 1
  ) {
    let now = Instant.now
    let last = repetitions[kind]
    if let last, now - last.written < .seconds(1) {
      repetitions[kind]?.unwritten += count
      return
    }
    repetitions[kind] = Repetition(written: now)
    let more = (last?.unwritten ?? 0) + count - 1
    write(priority, more > 0 ? "\(text) (and \(more) more since the last such line)" : text, outcome)
  }

  func write(_ event: Controller.LogEntry) {
    let outcome = event.outcome
    switch event {
    case .unauthenticated(let step, let error):
      write(step, .notRiders(error), count: 1)
    case .refused(let step, let code, _, let asker):
      // Only once a second: anyone can replay an old command as often as they like, and each copy is refused.
      let text = "\(step): \(asker.wish): \(code.rawValue.substituting("_", by: " "))"
      writeOnceASecond(.notice, text, text, outcome)
    case .challenged(let step, let asker), .answered(let step, let asker):
      let text = "\(step): \(asker.wish)"
      if isVerbose { writeOnceASecond(.debug, text, text, outcome) }
    case .stopped(let step, let asker):
      let text = "\(step): stopped by \(asker.name)"
      writeOnceASecond(.notice, text, text, outcome)
    case .retracts(let step):
      write(.warning, "\(step): closes, because the vehicle moves", outcome)
    case .lost:
      // `ControllerLoop` logs the loss of an input, together with its reason.
      break
    case .began(let step, let target, let asker):
      write(.notice, "\(step): \(target.rawValue) for \(asker.name)", outcome)
    case .ended(let step, let position, _):
      write(.notice, "\(step): is \(position == .close ? "closed" : position.rawValue)", outcome)
    case .failed(let step, let fault, let reason, _):
      write(.error, "\(step): fault \(fault.rawValue): \(reason)", outcome)
    case .noticed(let sequence):
      write(.notice, "the operator's notice \(sequence) is in force")
    case .noticeIgnored(let error):
      writeOnceASecond(.warning, "notice", "ignored a notice: \(error)")
    case .noticeNotJournaled(let reason):
      write(.error, "the operator's notice is not in force: the journal cannot be written: \(reason)")
    case .unwatched(let step, let reason):
      write(.notice, "\(step): opens although the traffic guard cannot see the road: \(reason.rawValue)")
    case .farRoad:
      write(
        .warning,
        "everything in the traffic feed is more than 50 km away: are latitude and longitude swapped ([guard] axes)?")
    case .notJournaled(let step, let reason):
      write(.error, "\(step): the journal cannot be written: \(reason)")
    }
  }

  func write(_ step: StepID, _ reason: CommandOpener.Reason, count: Int) {
    let outcome = Outcome(step, .ignored, cause: reason.cause)
    switch reason {
    case .notRiders(let error):
      let text = "\(step): ignored a message that is no rider's command: \(error)"
      writeOnceASecond(.warning, "rubbish", text, outcome, count: count)
    case .excess(let rider):
      let text = "ignored a message of “\(rider)”, who sends more than \(CommandOpener.perSecond) a second"
      writeOnceASecond(.warning, text, text, outcome, count: count)
    }
  }

  /// - Parameter stranger: whoever has the name of this vehicle's `VehicleLock`.
  func write(_ stranger: OtherDriver) {
    write(
      .warning,
      "\(stranger.description) holds the name of this vehicle's lock and is not its stepd: end it; until then a second stepd for this vehicle may start unnoticed"
    )
  }

  func write(_ report: EventLoss) {
    switch report {
    case .lost(let count, let reason):
      writeOnceASecond(.warning, "lost events", "\(count) events for the operator are lost: \(reason)")
    case .dropped(let count):
      write(.warning, "too many events wait for the operator: the oldest \(count) are dropped")
    case .setAside(let path, let place, let reason):
      write(.error, "\(path) is now \(place), and the events begin again: \(reason)")
    }
  }

  func write(_ event: BeaconEvent, of plan: BeaconPlan) {
    switch event {
    case .sending: write(.notice, "\(plan.names): on the air with \(plan.radio)")
    case .failed(let error): write(.warning, "\(plan.names): off the air: \(error); trying again")
    }
  }

  func write(_ event: EarEvent, of ear: Ear) {
    switch event {
    case .listening: write(.notice, "\(ear.step): listens with \(ear.radio)")
    case .failed(let error): write(.warning, "\(ear.step): does not listen: \(error); trying again")
    case .heard: break
    }
  }
}

extension Log {
  func write(_ event: LinkEvent, of links: LinkListener) {
    switch event {
    case .listening: write(.notice, "takes riders' Bluetooth links with hci\(links.adapter)")
    case .failed(let error): write(.warning, "takes no Bluetooth links: \(error); trying again")
    case .sending: write(.notice, "can be found by Bluetooth with hci\(links.adapter)")
    case .silent(let error): write(.warning, "cannot be found by Bluetooth: \(error); trying again")
    // Anybody can begin and end links.
    case .ended: break
    }
  }

  func write(_ event: FeedEvent, of listener: RoadListener) {
    switch event {
    case .connected: write(.info, "watches the road with \(listener.feed.address)")
    case .lost(let reason?): write(.warning, "does not see the road: \(reason); trying again")
    case .lost(nil), .frame: break
    }
  }
}

extension Asker {
  /// The rider's name, in quotes if it could be read as another part of the line.
  fileprivate var name: String { RiderName(rider) == nil ? "“\(rider)”" : rider }

  /// What the rider wanted: `anna asked for the status`.
  fileprivate var wish: String {
    switch asked {
    case .open?: "\(name) asked to open"
    case .close?: "\(name) asked to close"
    case .stop?: "\(name) asked to stop"
    case .unknown?: "\(name) asked for the status"
    case nil: "\(name) asked for something"
    }
  }
}

extension Outcome {
  fileprivate var fields: [Log.Field] {
    let values: [(Log.Field.Name, String?)] = [
      (.step, step.description), (.outcome, word.rawValue), (.code, code), (.cause, cause), (.position, position),
      (.token, asker?.token), (.method, asker?.method?.rawValue), (.zone, asker?.zone?.rawValue),
      (.distance, asker?.distance.map { "\(($0 * 10).rounded() / 10)" }),
    ]
    return values.compactMap { name, value in value.map { .init(name: name, value: printable($0)) } }
  }
}

/// Writes the log's lines. Lines that cannot be written are lost, and the next line says how many.
private final class LogOutput: Sendable {
  struct Line: Sendable {
    let priority: Log.Priority
    /// Has no control characters.
    let text: String
    let fields: [Log.Field]
  }

  /// How many lines may wait. A disk that does not answer must not cost more memory than this.
  private static let capacity = 256

  private let descriptor: Int32
  /// Whether the descriptor is systemd's journal (systemd.exec(5), `JOURNAL_STREAM`). The variable alone is no proof:
  /// programs that a service starts inherit it, such as a terminal on many desktops.
  private let isJournal: Bool
  private let journal: DatagramSender?
  private let count = Mutex((waiting: 0, lost: 0, inAll: 0))

  init(_ descriptor: Int32, _ path: String, _ environment: (String) -> String?) {
    self.descriptor = descriptor
    var status = stat()
    isJournal =
      environment("JOURNAL_STREAM").map { stream in
        fstat(descriptor, &status) == 0 && stream == "\(status.st_dev):\(status.st_ino)"
      } ?? false
    journal = isJournal ? try? DatagramSender(to: path, path) : nil
  }

  /// The number of lines lost since the start.
  var lost: Int { count.withLock { $0.inAll } }

  func admit() -> Bool {
    count.withLock { count in
      guard count.waiting < Self.capacity else {
        count.lost += 1
        count.inAll += 1
        return false
      }
      count.waiting += 1
      return true
    }
  }

  /// Writes a line if that does not block; it would block, for example, behind a stopped pager.
  func write(_ line: Line) {
    let lost = count.withLock { count in
      count.waiting -= 1
      return count.lost
    }
    let text = lost > 0 ? "\(line.text) (lines lost before this one: \(lost))" : line.text
    let isTaken =
      journal?.send(Self.entry(line.priority, text, line.fields)) == true
      || write((isJournal ? "<\(line.priority.rawValue)>" : "stepd: ") + text)
    count.withLock { count in
      count.lost = isTaken ? count.lost - lost : count.lost + 1
      count.inAll += isTaken ? 0 : 1
    }
  }

  /// - Returns: whether the line was written.
  private func write(_ text: String) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    guard poll(&entry, 1, 0) == 1, entry.revents & Int16(POLLOUT) != 0 else { return false }
    // A writable pipe takes PIPE_BUF bytes at once (pipe(7)): 4096. A line has at most 4001.
    let bytes = Array((String(text.unicodeScalars.prefix(1000)) + "\n").utf8)
    // A full disk takes none, or not all.
    return bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) } == bytes.count
  }

  /// A line in journald's own protocol: one field per line. No value contains a line feed.
  private static func entry(_ priority: Log.Priority, _ text: String, _ fields: [Log.Field]) -> [UInt8] {
    let message = String(text.unicodeScalars.prefix(1000))
    var entry = "PRIORITY=\(priority.rawValue)\nSYSLOG_IDENTIFIER=stepd\nMESSAGE=\(message)\n"
    for field in fields { entry += "\(field.name.rawValue)=\(field.value)\n" }
    return Array(entry.utf8)
  }
}
