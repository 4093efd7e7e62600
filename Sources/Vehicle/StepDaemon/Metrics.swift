import Domain
import Glibc
import StepController
import Synchronization
import SystemIO

/// The counters and the state of `stepd`, for Prometheus (its text format, 0.0.4).
///
/// Labels are fixed words and the names of steps and inputs, so no sender can create more of them.
struct Metrics: Sendable {
  /// In the order of the output.
  enum Name: String, CaseIterable, Sendable {
    case build = "stepd_build_info"
    case start = "stepd_start_time_seconds"
    case commands = "stepd_commands_total"
    case refusals = "stepd_refusals_total"
    case ignored = "stepd_ignored_messages_total"
    case holdUps = "stepd_reading_pauses_total"
    case motions = "stepd_motions_total"
    case faults = "stepd_faults_total"
    case position = "stepd_step_position"
    case phase = "stepd_step_phase"
    case connected = "stepd_broker_connected"
    case connections = "stepd_broker_connections_total"
    case commitFailures = "stepd_journal_failures_total"
    case notice = "stepd_notice_sequence"
    case lostEvents = "stepd_events_lost_total"
    case lostLines = "stepd_log_lines_lost_total"
    case sending = "stepd_beacon_sending"
    case listening = "stepd_ear_listening"
    case linkListening = "stepd_link_listening"
    case linkSending = "stepd_link_sending"
    case links = "stepd_links_total"
    case lostInput = "stepd_input_lost"
    case road = "stepd_road_connected"
    case guardState = "stepd_guard_state"

    var help: String {
      switch self {
      case .build: "What runs: its version, its commit where that is known, and its processor."
      case .start: "When stepd started, Unix time."
      case .commands: "Riders' commands, by what became of them."
      case .refusals: "Refused commands, by refusal code and, where the code has several causes, by the failed check."
      case .ignored: "Messages that got no answer."
      case .holdUps: "How often reading from the broker paused because more came than could be read."
      case .motions: "Motions that began, by where they go."
      case .faults: "Faults, by kind."
      case .position: "1 for the position of the step; while it moves, for the position that it left."
      case .phase: "1 for what the step does."
      case .connected: "Whether the broker is connected."
      case .connections: "Connections to the broker."
      case .commitFailures: "Journals that could not be written."
      case .notice: "The sequence number of the operator's notice in force, 0 where there is none."
      case .lostEvents: "Events that the operator will never see."
      case .lostLines: "Lines of the log that nobody took."
      case .sending: "Whether the step's beacon is on the air."
      case .listening: "Whether the adapter at the step listens."
      case .linkListening: "Whether riders' Bluetooth links are taken."
      case .linkSending: "Whether the vehicle can be found by Bluetooth."
      case .links: "Bluetooth links that have ended, by whether a rider has used them."
      case .lostInput: "Whether an input cannot be read."
      case .road: "Whether the traffic feed is connected. It is while somebody wants to open a step."
      case .guardState: "1 for what the traffic guard knows of the step's road; idle while nobody asks."
      }
    }
  }

  typealias Labels = [(name: String, value: String)]

  /// The upper bounds of the histogram buckets for journal writes, seconds.
  private static let bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]
  private static let commitTime = "stepd_journal_commit_seconds"

  /// The samples by their labels, as text.
  private var samples: [Name: [String: Double]] = [:]
  private var begun: [CommitTicket: Instant] = [:]
  /// How many journal writes took at most as long as each bound.
  private var commits = [Int](repeating: 0, count: bounds.count)
  private var commitSum = (count: 0, seconds: 0.0)

  /// - Parameter start: Unix time.
  init(of steps: [StepID], build: Build, at start: Int64) {
    set(
      .build, 1,
      [("version", build.version)] + (build.commit.map { [("commit", $0)] } ?? [])
        + [("architecture", build.architecture)])
    set(.start, Double(start))
    for name in [Name.connections, .commitFailures, .lostEvents] { set(name, 0) }
    // Prometheus can compute a rate only if the counter was seen at zero.
    for cause in [CommandOpener.Reason.strangers, "excess"] { count(.ignored, [("reason", cause)], by: 0) }
    for step in steps.map(\.description) {
      for word in Outcome.Word.ofCommands {
        count(.commands, [("step", step), ("outcome", word.rawValue)], by: 0)
      }
    }
  }

  // MARK: - Counting

  mutating func count(_ event: Controller.LogEntry) {
    if let outcome = event.outcome { count(outcome) }
    if case .notJournaled = event { count(.commitFailures) }
    if case .noticeNotJournaled = event { count(.commitFailures) }
  }

  mutating func count(_ outcome: Outcome, times: Int = 1) {
    let step = (name: "step", value: outcome.step.description)
    switch outcome.word {
    case .challenged, .answered, .stopped, .refused: break
    case .began:
      count(.motions, [step, ("target", outcome.position ?? ""), ("cause", outcome.cause ?? "command")])
    case .fault: count(.faults, [step, ("fault", outcome.code ?? "")])
    case .ignored: count(.ignored, [("reason", outcome.cause ?? "")], by: times)
    case .ended: break
    }
    if outcome.word == .refused {
      count(.refusals, [step, ("code", outcome.code ?? ""), ("cause", outcome.cause ?? "")])
    }
    if outcome.asker != nil, Outcome.Word.ofCommands.contains(outcome.word) {
      count(.commands, [step, ("outcome", outcome.word.rawValue)])
    }
  }

  mutating func count(_ report: EventLoss) {
    switch report {
    case .lost(let count, _): self.count(.lostEvents, by: Int(count))
    case .dropped(let count): self.count(.lostEvents, by: count)
    case .setAside: break
    }
  }

  mutating func note(_ event: BeaconEvent, of plan: BeaconPlan) {
    let isSending = if case .sending = event { 1.0 } else { 0.0 }
    for step in plan.steps { set(.sending, isSending, [("step", step.description)]) }
  }

  mutating func note(_ event: LinkEvent) {
    switch event {
    case .listening: set(.linkListening, 1)
    case .failed: set(.linkListening, 0)
    case .sending: set(.linkSending, 1)
    case .silent: set(.linkSending, 0)
    case .ended(let wasRiders): count(.links, [("of", wasRiders ? "riders" : "strangers")])
    }
  }

  mutating func begin(_ ticket: CommitTicket) { begun[ticket] = .now }

  mutating func written(_ report: JournalReport) {
    let (ticket, isWritten) =
      switch report {
      case .committed(let ticket): (ticket, true)
      case .failed(let ticket, _): (ticket, false)
      }
    // Tickets are reported in order.
    guard let began = begun[ticket] else { return }
    begun = begun.filter { $0.key > ticket }
    guard isWritten else { return }
    let seconds = began.duration(to: .now).inSeconds
    for (index, bound) in Self.bounds.enumerated() where seconds <= bound { commits[index] += 1 }
    commitSum = (commitSum.count + 1, commitSum.seconds + seconds)
  }

  mutating func count(_ name: Name, _ labels: Labels = [], by count: Int = 1) {
    samples[name, default: [:]][Self.text(labels), default: 0] += Double(count)
  }

  // MARK: - How it stands

  mutating func set(_ name: Name, _ value: Double, _ labels: Labels = []) {
    samples[name, default: [:]][Self.text(labels)] = value
  }

  mutating func set(_ condition: Controller.Condition, of step: StepID) {
    for position in [Position.open, .close, .unknown] {
      set(
        .position, condition.position == position ? 1 : 0,
        [("step", step.description), ("position", position.rawValue)])
    }
    for phase in [Phase.idle, .moving, .fault] {
      set(.phase, condition.phase == phase ? 1 : 0, [("step", step.description), ("phase", phase.rawValue)])
    }
  }

  /// - Parameter watch: nil while nobody asks.
  mutating func set(_ watch: Watch?, of step: StepID) {
    let state = watch?.rawValue ?? "idle"
    for word in ["idle", "clear", "approaching", "obstructed", "blind"] {
      set(.guardState, word == state ? 1 : 0, [("step", step.description), ("state", word)])
    }
  }

  // MARK: - Writing

  var text: String {
    var text = ""
    for name in Name.allCases {
      guard let values = samples[name] else { continue }
      text += Self.head(name.rawValue, name.rawValue.hasSuffix("_total") ? "counter" : "gauge", name.help)
      for (labels, value) in values.sorted(by: { $0.key < $1.key }) {
        text += "\(name.rawValue)\(labels) \(Self.text(value))\n"
      }
    }
    text += Self.head(Self.commitTime, "histogram", "How long a journal took to be on the medium.")
    for (bound, count) in zip(Self.bounds, commits) { text += "\(Self.commitTime)_bucket{le=\"\(bound)\"} \(count)\n" }
    text += "\(Self.commitTime)_bucket{le=\"+Inf\"} \(commitSum.count)\n"
    text += "\(Self.commitTime)_sum \(commitSum.seconds)\n\(Self.commitTime)_count \(commitSum.count)\n"
    return text
  }

  private static func head(_ name: String, _ kind: String, _ help: String) -> String {
    "# HELP \(name) \(help)\n# TYPE \(name) \(kind)\n"
  }

  /// Counters and states are whole numbers.
  private static func text(_ value: Double) -> String { "\(Int64(value))" }

  private static func text(_ labels: Labels) -> String {
    if labels.isEmpty { return "" }
    return "{" + labels.map { "\($0.name)=\"\($0.value)\"" }.joined(separator: ",") + "}"
  }
}

extension Outcome.Word {
  /// The outcomes of riders' commands.
  fileprivate static let ofCommands: [Outcome.Word] = [.challenged, .answered, .refused, .began, .stopped]
}

/// The file that Prometheus' node exporter reads. A separate thread replaces it as a whole.
final class MetricsFile {
  /// The time between two writes.
  static let interval = Duration.seconds(5)

  let build: Build
  /// Why it could not be written; the same reason is not repeated.
  let failures: Mailbox<SystemError>
  private let path: String
  private let writer: Worker<String>
  private let state = State()

  private final class State: Sendable {
    let isWriting = Atomic(false)
    let hasWritten = Atomic(false)
    let failure = Mutex<SystemError?>(nil)
  }

  init(_ path: String, build: Build) throws {
    self.build = build
    self.path = path
    failures = try Mailbox()
    writer = try Worker { [failures, state] texts in
      var failure: SystemError?
      do throws(SystemError) {
        // The newest text is enough; a worker never gets an empty list. The file's reader is another user, and nothing
        // in the file is worth syncing.
        try Files.replace(path, with: texts.last!.utf8, mode: 0o644, isDurable: false)
        state.hasWritten.store(true, ordering: .relaxed)
      } catch {
        failure = error
      }
      let isNew = state.failure.withLock { last in
        defer { last = failure }
        return last != failure
      }
      if let failure, isNew { failures.post(failure) }
      state.isWriting.store(false, ordering: .relaxed)
    }
  }

  /// Writes a text, unless one is still being written: a slow disk must not cost more memory than one text.
  func write(_ text: String) {
    guard !state.isWriting.exchange(true, ordering: .relaxed) else { return }
    writer.post(text)
  }

  /// Removes the file, because its content is no longer true. What could not be replaced is not this program's.
  func close() {
    writer.finish(within: .seconds(1))
    if state.hasWritten.load(ordering: .relaxed) { unlink(path) }
  }
}
