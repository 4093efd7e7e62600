package import Domain
package import StepController

/// A journal in memory, which is slow or fails where a test wants it to.
package final class PlayedJournal: JournalStore {
  /// What would survive a power cut.
  package private(set) var medium: Journal
  /// Why nothing can be written.
  package var failure: String?
  /// Nothing is written until `write`.
  package var isSlow = false
  package private(set) var commits = 0
  private var waiting: [(Journal, CommitTicket)] = []
  private let report: (JournalReport) -> Void

  package init(_ medium: Journal, report: @escaping (JournalReport) -> Void) {
    self.medium = medium
    self.report = report
  }

  package func commit(_ journal: Journal, _ ticket: CommitTicket) {
    commits += 1
    waiting.append((journal, ticket))
    if !isSlow { write() }
  }

  /// The program that writes it is killed: what waits is lost.
  package func crash() { waiting = [] }

  /// Writes all that waits, as one.
  package func write() {
    let commits = waiting
    waiting = []
    if failure == nil, let last = commits.last { medium = last.0 }
    for (_, ticket) in commits { report(failure.map { .failed(ticket, $0) } ?? .committed(ticket)) }
  }
}

/// A servo that remembers what it was told, and is slow or fails where a test wants it to.
///
/// It stands in for a motor, which no machine that runs tests has. A step whose place nobody knows stands somewhere
/// all the same, and a single pulse turns it a little.
package final class PlayedServo: ServoDriver {
  package private(set) var orders: [ServoOrder] = []
  package var failure: ServoError?
  /// Why it cannot be let go.
  package var releaseFailure: ServoError?
  /// Nothing is done until `work`.
  package var isSlow = false
  /// While an order is carried out that waited.
  package private(set) var isLate = false
  /// Nor is anything for these steps.
  package var slowSteps: Set<StepID> = []
  /// Where steps are held.
  package private(set) var held: [StepID: Double] = [:]
  /// Where steps stand, held or not: 0 closed, 1 open.
  package var places: [StepID: Double] = [:]
  /// How far one pulse turns it, as a share of the way.
  package var inch = 0.05
  /// How far each step was ever thrown by one order.
  package private(set) var longestThrow: [StepID: Double] = [:]
  /// Looked at when an order is executed.
  package var atOrder: (ServoOrder) -> Void = { _ in }
  private var waiting: [ServoOrder] = []
  private let report: (ServoReport) -> Void

  package init(report: @escaping (ServoReport) -> Void) { self.report = report }

  package func execute(_ order: ServoOrder) {
    orders.append(order)
    if isSlow || slowSteps.contains(order.step) { return waiting.append(order) }
    if !waiting.isEmpty, slowSteps.isEmpty { work() }
    report(ServoReport(order, outcome(of: order)))
  }

  /// Executes all that waits.
  package func work() {
    let orders = waiting
    waiting = []
    isLate = true
    for order in orders { report(ServoReport(order, outcome(of: order))) }
    isLate = false
  }

  private func outcome(of order: ServoOrder) -> ServoReport.Outcome {
    atOrder(order)
    let failure = order.action == .release ? releaseFailure : failure
    if let failure { return .failed(failure) }
    switch order.action {
    case .prepare:
      return .ready(at: held[order.step])
    case .move(let place):
      turn(order.step, to: place)
      held[order.step] = place
    case .inch(let end):
      let place = places[order.step] ?? 0
      turn(order.step, to: place + min(max(end - place, -inch), inch))
      held[order.step] = nil
    case .release:
      held[order.step] = nil
    }
    return .done
  }

  private func turn(_ step: StepID, to place: Double) {
    longestThrow[step] = max(longestThrow[step] ?? 0, abs(place - (places[step] ?? 0)))
    places[step] = place
  }

  /// How many motions were prepared.
  package var motions: Int { orders.count { if case .prepare = $0.action { true } else { false } } }

  /// The program that drives it is killed: what waits is lost, and what is held stays so.
  package func crash() { waiting = [] }

  /// The power of the servos goes, and comes back: nothing is held any more.
  package func powerCut() { (held, waiting) = ([:], []) }
}

/// A guard that says what a test wants, and remembers what it was asked.
package final class PlayedGuard: MotionGuard {
  package var clearance = Clearance.clear
  package private(set) var asked: [GuardedMotion] = []

  package init() {}

  package func clearance(for motion: GuardedMotion, at time: ControllerTime) -> Clearance {
    asked.append(motion)
    return clearance
  }
}
