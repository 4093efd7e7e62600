import Domain
import StepProtocol

/// The stages of a motion: its journal, its servo's set-up, its ticks, and its end.
extension Controller {
  // MARK: - The journal

  mutating func commit(_ purpose: Purpose) {
    if case .motion(let request) = purpose, let state = steps[request.step] {
      // The journal is written first. After a crash from here on, it shows an unfinished motion and a used challenge.
      let step = request.step
      journal.entries[step] = Journal.Entry(
        position: state.position, motion: request.target, fault: state.fault,
        challenge: request.challenge ?? journal.entries[step]?.challenge)
      steps[step]?.activity = .committing(request)
    }
    lastTicket += 1
    commits[lastTicket] = (purpose, now.clock)
    effects.append(.commit(journal, lastTicket))
  }

  /// The journal is on the medium: what waited for it goes on.
  mutating func proceed(from ticket: CommitTicket) {
    switch commits.removeValue(forKey: ticket)?.purpose {
    case .reading(let reading, let request)?:
      counters[reading.uid] = reading.counter
      accept(request)
    case .motion(let request)?:
      if let code = lapse(of: request) { return abandon(request, Refusal(code)) }
      let step = request.step
      steps[step]?.activity = .preparing(request)
      order(step, .prepare(from: steps[step]?.position ?? .unknown, to: request.target.position))
    case .notice(let notice)?: obey(notice)
    case .note?, nil:
      break
    }
  }

  /// Gives up what waited for a journal that could not be written. Nothing has moved.
  mutating func giveUp(_ ticket: CommitTicket, _ reason: String) {
    switch commits.removeValue(forKey: ticket)?.purpose {
    case .reading(let reading, let request)?:
      log(.notJournaled(request.step, reason))
      // Keep the counter if a later reading of the same tag is being written.
      if journal.counters[reading.uid] == reading.counter { journal.counters[reading.uid] = counters[reading.uid] }
      if let sender = request.sender { refuse(sender, Refusal(.unavailable), .journal) }
    case .motion(let request)?:
      log(.notJournaled(request.step, reason))
      abandon(request, Refusal(.unavailable), .journal)
    case .note(let step)?:
      log(.notJournaled(step, reason))
    case .notice(let notice)?:
      forget(notice, reason)
    case nil:
      break
    }
  }

  /// A disk that hangs must not keep a rider waiting. Its late answer moves nothing.
  mutating func giveUpLateJournals() {
    for (ticket, commit) in commits.sorted(by: { $0.key < $1.key }) {
      guard let step = commit.purpose.waiting, now.clock - commit.began >= Controller.journalTimeout else { continue }
      giveUp(ticket, "it has not answered for \(Controller.journalTimeout) ms")
      commits[ticket] = (.note(step), commit.began)
    }
  }

  /// Writes the position of a step at rest.
  mutating func writeState(of step: StepID) {
    guard let state = steps[step] else { return }
    journal.entries[step] = Journal.Entry(
      position: state.position, fault: state.fault, challenge: journal.entries[step]?.challenge)
    commit(.note(step))
  }

  // MARK: - The beginning

  /// Why the motion must no longer begin, if something has changed since it was requested.
  func lapse(of request: MotionRequest) -> RefusalCode? {
    if isEnding { return .unavailable }
    if case .interlock = request.cause, !readings.vehicleMoves { return .unavailable }
    return now.clock < request.deadline ? nil : .expired
  }

  /// Gives up a motion that has not begun, and updates the journal and the statements.
  mutating func abandon(_ request: MotionRequest, _ refusal: Refusal, _ cause: RefusalCause? = nil) {
    let step = request.step
    // Later reports of its journal and its servo are ignored.
    for (ticket, commit) in commits {
      if case .motion = commit.purpose, commit.purpose.waiting == step { commits[ticket]?.purpose = .note(step) }
    }
    steps[step]?.order = 0
    steps[step]?.activity = .resting
    writeState(of: step)
    if let sender = request.sender {
      refuse(sender, refusal, cause)
    } else if readings.blockReason(of: step, extends: false) == nil {
      // A retraction that went wrong is not repeated: only a command moves the step again.
      steps[step]?.isToRetract = false
    }
    retract(step)
  }

  private mutating func begin(_ request: MotionRequest, from place: Double?) {
    let step = request.step
    if let code = lapse(of: request) { return abandon(request, Refusal(code)) }
    let motion = Motion(request, from: place, at: now.clock, profile)
    switch clearance(for: motion, hasBegun: false) {
    case .clear: break
    // Not a fault: the motion is only too early.
    case .hold(let blockReason): return abandon(request, blockReason.refusal)
    case .stop(let blockReason):
      log(.failed(step, blockReason.fault, blockReason.description, by: request.sender?.asker))
      return abandon(request, blockReason.refusal)
    }
    if request.target == .open, let blindness = traffic?.blindness(at: step, at: now.clock) {
      log(.unwatched(step, blindness))
    }
    steps[step]?.fault = nil
    announce(motion)
  }

  /// Turns a moving step round, because its rider wants the other end. The journal already says that a motion began,
  /// which is all that counts after a crash. So the step turns at once and does not wait for the journal.
  mutating func turnRound(_ motion: Motion, for request: MotionRequest) {
    var motion = motion
    motion.turnRound(for: request, at: now.clock)
    // The step now comes from neither end.
    steps[motion.step]?.position = .unknown
    journal.entries[motion.step]?.motion = request.target
    journal.entries[motion.step]?.challenge = request.challenge
    commit(.note(motion.step))
    announce(motion)
  }

  private mutating func announce(_ motion: Motion) {
    steps[motion.step]?.activity = .moving(motion)
    steps[motion.step]?.reservation = nil
    reportBeginning(of: motion)
    switch motion.request.cause {
    case .command(_, let sender):
      log(.began(motion.step, motion.target, by: sender.asker))
      answer(sender, .obeyed)
    case .interlock:
      steps[motion.step]?.isToRetract = false
      log(.retracts(motion.step))
    }
    publish(motion.step)
  }

  private func clearance(for motion: Motion, hasBegun: Bool) -> Clearance {
    if let blockReason = readings.blockReason(of: motion) { return .stop(blockReason) }
    if motion.obstacle != nil { return .clear }
    return clearance(
      for: GuardedMotion(step: motion.step, target: motion.target, place: motion.place, hasBegun: hasBegun))
  }

  /// What the guards say.
  func clearance(for motion: GuardedMotion) -> Clearance {
    for one in guards {
      let clearance = one.clearance(for: motion, at: now)
      if clearance != .clear { return clearance }
    }
    return .clear
  }

  // MARK: - Under way

  mutating func servoReported(_ report: ServoReport) {
    guard let state = steps[report.step] else { return }
    if report.number == state.release {
      steps[report.step]?.release = nil
      if case .failed(let error) = report.outcome { disbelieve(report.step, "the servo is still driven: \(error)") }
      return
    }
    // A late report on an order that was given up.
    guard report.number == state.order else { return }
    switch (state.activity, report.outcome) {
    case (.preparing(let request), .ready(let place)):
      begin(request, from: place ?? state.position.extension)
    case (.preparing(let request), .failed(let error)):
      log(.failed(report.step, error.fault, error.description, by: request.sender?.asker))
      abandon(request, Refusal(error == .obstructed ? .obstructed : .unavailable), .servo)
    case (.moving(var motion), .done):
      motion.ordered = nil
      steps[report.step]?.activity = .moving(motion)
      guard motion.isAtEnd else { return }
      let end = motion.target.position
      if let obstacle = motion.obstacle { return finish(motion, .unknown, obstacle.fault) }
      if readings.position(of: motion.step, believed: end) == end { return finish(motion, end, nil) }
      motion.waitForEnd(since: now.clock)
      steps[report.step]?.activity = .moving(motion)
    case (.moving(var motion), .failed(.obstructed)):
      motion.ordered = nil
      halt(motion, BlockReason(ServoError.obstructed.description))
    case (.moving(let motion), .failed(let error)):
      fail(motion, error.fault, error.description)
    case (.resting, .failed(let error)):
      disbelieve(report.step, "the servo did not take its last place: \(error)")
    case (.preparing, .done), (.moving, .ready), (.resting, _), (.committing, _):
      break
    }
  }

  /// Handles a tick: moves a step by one stride, if the servo took the last one and nothing is in the way.
  mutating func advance(_ step: StepID) {
    if case .preparing(let request)? = steps[step]?.activity { return keepWaiting(for: request) }
    guard case .moving(var motion)? = steps[step]?.activity else { return }
    let gap = motion.turn(at: now.clock)
    if let (fault, reason) = motion.failure(at: now.clock, gap: gap) { return fail(motion, fault, reason) }
    switch clearance(for: motion, hasBegun: true) {
    case .stop(let blockReason):
      return halt(motion, blockReason)
    case .clear where readings.sees(motion):
      return finish(motion, motion.target.position, nil)
    case .clear where motion.ordered == nil:
      if let action = motion.advance(by: gap) {
        motion.ordered = now.clock
        order(step, action)
      }
    case .clear, .hold:
      break
    }
    steps[step]?.activity = .moving(motion)
  }

  private mutating func keepWaiting(for request: MotionRequest) {
    guard let code = lapse(of: request) else { return }
    if code == .expired {
      log(
        .failed(
          request.step, .driver, "the servo was not ready before the command's deadline",
          by: request.sender?.asker))
    }
    abandon(request, Refusal(code))
  }

  // MARK: - The end

  /// Stops at once: no further pulse goes in this direction. The step backs off from an obstacle.
  mutating func halt(_ motion: Motion, _ blockReason: BlockReason) {
    log(.failed(motion.step, blockReason.fault, blockReason.description, by: motion.request.sender?.asker))
    var motion = motion
    if blockReason.isInTheWay {
      if motion.backOff(from: blockReason, at: now.clock) {
        steps[motion.step]?.activity = .moving(motion)
        return
      }
      // The servo's place is unknown, so holding it could press it against what is in the way.
      if motion.place == nil { order(motion.step, .release) }
    }
    finish(motion, .unknown, blockReason.fault)
  }

  /// After a driver fault the state of the servo is unknown, so the servo is released. After other faults it is held,
  /// so that a person who stands on the step does not fall.
  private mutating func fail(_ motion: Motion, _ fault: Fault, _ reason: String) {
    log(.failed(motion.step, fault, reason, by: motion.request.sender?.asker))
    if fault == .driver { order(motion.step, .release) }
    finish(motion, .unknown, fault)
  }

  /// Reports the end at once, without waiting for the journal. After a crash in between, the journal says that the
  /// motion was interrupted, which errs on the safe side.
  ///
  /// - Parameter position: where the step is, unless its switches say otherwise.
  mutating func finish(_ motion: Motion, _ position: Position, _ fault: Fault?) {
    guard var state = steps[motion.step] else { return }
    state.position = readings.position(of: motion.step, believed: position)
    state.activity = .resting
    state.fault = fault
    // A retraction that went wrong is not repeated: only a command moves the step again.
    if fault != nil, fault != .vehicleMoving { state.isToRetract = false }
    if fault == nil, state.position == .open, let device = motion.request.sender?.device {
      state.reservation = (device, now.clock + policy.reserve)
    }
    steps[motion.step] = state
    if fault == nil, position != .unknown {
      log(.ended(motion.step, position, by: motion.request.sender?.asker))
    }
    reportEnd(of: motion, at: state.position, fault)
    writeState(of: motion.step)
    publish(motion.step)
    for sender in motion.senders { answer(sender, .obeyed) }
    retract(motion.step)
  }

  /// Reports a servo fault of a step at rest: otherwise nobody would notice that the servo did not obey.
  private mutating func disbelieve(_ step: StepID, _ reason: String) {
    log(.failed(step, .driver, reason, by: nil))
    reportFault(of: step, .driver)
    guard case .resting? = steps[step]?.activity else { return }
    steps[step]?.fault = .driver
    writeState(of: step)
    publish(step)
  }
}
