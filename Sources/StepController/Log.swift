import Glibc
import StepDomain
import StepProtocol
import Terminal

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
  private var rubbish = Rubbish()

  /// Whoever sends rubbish must not be able to fill the disk with our lines about it.
  private struct Rubbish {
    var reported: ContinuousClock.Instant?
    var unreported = 0
  }

  /// - Parameter isJournal: whether standard error goes to systemd's journal (`JOURNAL_STREAM` is set).
  init(isVerbose: Bool, isJournal: Bool) {
    self.isVerbose = isVerbose
    self.isJournal = isJournal
  }

  /// - Parameter text: one line; whatever would make more of it, or steer a terminal, is shown and not obeyed.
  func write(_ priority: Priority, _ text: String) {
    if priority == .debug, !isVerbose { return }
    let line = (isJournal ? "<\(priority.rawValue)>" : "stepd: ") + printable(text) + "\n"
    _ = Array(line.utf8).withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }

  mutating func write(_ event: Controller.Event) {
    switch event {
    case .unauthenticated(let step, let error):
      let now = ContinuousClock.now
      if let last = rubbish.reported, now - last < .seconds(1) {
        rubbish.unreported += 1
        return
      }
      let more = rubbish.unreported > 0 ? " (and \(rubbish.unreported) more since the last such line)" : ""
      rubbish = Rubbish(reported: now, unreported: 0)
      write(.warning, "\(step): ignored a message that is no rider's command: \(error)\(more)")
    case .refused(let step, let code, let rider):
      write(.notice, "\(step): refused “\(rider)”: \(code.rawValue)")
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
