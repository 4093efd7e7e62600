import Domain
import StepProtocol

/// The stages of a motion: its journal, its servo's set-up, its ticks, and its end.
extension Controller {
  // MARK: - The journal

  mutating func commit(_ purpose: Purpose) {
    if case .motion(let undertaking) = purpose, let state = steps[undertaking.step] {
      // The journal is written first. After a crash from here on, it shows an unfinished motion and a used challenge.
      let step = undertaking.step
      journal.entries[step] = Journal.Entry(
        position: state.position, motion: undertaking.target, fault: state.fault,
        challenge: undertaking.challenge ?? journal.entries[step]?.challenge)
      steps[step]?.activity = .committing(undertaking)
    }
    lastTicket += 1
    commits[lastTicket] = (purpose, now.clock)
    effects.append(.commit(journal, lastTicket))
  }

  /// The journal is on the medium: what waited for it goes on.
  mutating func proceed(from ticket: CommitTicket) {
    switch commits.removeValue(forKey: ticket)?.purpose {
    case .reading(let reading, let undertaking)?:
      counters[reading.uid] = reading.counter
      undertake(undertaking)
    case .motion(let undertaking)?:
      if let code = lapse(of: undertaking) { return abandon(undertaking, Refusal(code)) }
      let step = undertaking.step
      steps[step]?.activity = .preparing(undertaking)
      order(step, .prepare(from: steps[step]?.position ?? .unknown, to: undertaking.target.position))
    case .notice(let notice)?: obey(notice)
    case .note?, nil:
      break
    }
  }

  /// Gives up what waited for a journal that could not be written. Nothing has moved.
  mutating func giveUp(_ ticket: CommitTicket, _ reason: String) {
    switch commits.removeValue(forKey: ticket)?.purpose {
    case .reading(let reading, let undertaking)?:
      record(.notJournaled(undertaking.step, reason))
      // Keep the counter if a later reading of the same tag is being written.
      if journal.counters[reading.uid] == reading.counter { journal.counters[reading.uid] = counters[reading.uid] }
      if let sender = undertaking.sender { refuse(sender, Refusal(.unavailable), .journal) }
    case .motion(let undertaking)?:
      record(.notJournaled(undertaking.step, reason))
      abandon(undertaking, Refusal(.unavailable), .journal)
    case .note(let step)?:
      record(.notJournaled(step, reason))
    case .notice(let notice)?:
      forget(notice, reason)
    case nil:
      break
    }
  }

  /// A disk that hangs must not keep a rider waiting. Its late answer moves nothing.
  mutating func giveUpLateJournals() {
    for (ticket, commit) in commits.sorted(by: { $0.key < $1.key }) {
      guard let step = commit.purpose.waiting, now.clock - commit.began >= Controller.journalPatience else { continue }
      giveUp(ticket, "it has not answered for \(Controller.journalPatience) ms")
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
  func lapse(of undertaking: Undertaking) -> RefusalCode? {
    if isEnding { return .unavailable }
    if case .interlock = undertaking.cause, !readings.vehicleMoves { return .unavailable }
    return now.clock < undertaking.deadline ? nil : .expired
  }

  /// Gives up a motion that has not begun, and updates the journal and the statements.
  mutating func abandon(_ undertaking: Undertaking, _ refusal: Refusal, _ cause: RefusalCause? = nil) {
    let step = undertaking.step
    // Later reports of its journal and its servo are ignored.
    for (ticket, commit) in commits {
      if case .motion = commit.purpose, commit.purpose.waiting == step { commits[ticket]?.purpose = .note(step) }
    }
    steps[step]?.order = 0
    steps[step]?.activity = .resting
    writeState(of: step)
    if let sender = undertaking.sender {
      refuse(sender, refusal, cause)
    } else if readings.hindrance(to: step, extends: false) == nil {
      // A retraction that went wrong is not repeated: only a command moves the step again.
      steps[step]?.isToRetract = false
    }
    retract(step)
  }

  private mutating func begin(_ undertaking: Undertaking, from place: Double?) {
    let step = undertaking.step
    if let code = lapse(of: undertaking) { return abandon(undertaking, Refusal(code)) }
    let motion = Motion(undertaking, from: place, at: now.clock, profile)
    switch clearance(for: motion, hasBegun: false) {
    case .go: break
    // Not a fault: the motion is only too early.
    case .hold(let hindrance): return abandon(undertaking, hindrance.refusal)
    case .stop(let hindrance):
      record(.failed(step, hindrance.fault, hindrance.description, by: undertaking.sender?.asker))
      return abandon(undertaking, hindrance.refusal)
    }
    if undertaking.target == .open, let blindness = traffic?.blindness(at: step, at: now.clock) {
      record(.unwatched(step, blindness))
    }
    steps[step]?.fault = nil
    tell(motion)
  }

  /// Turns a moving step round, because its rider wants the other end. The journal already says that a motion began,
  /// which is all that counts after a crash. So the step turns at once and does not wait for the journal.
  mutating func turnRound(_ motion: Motion, for undertaking: Undertaking) {
    var motion = motion
    motion.turnRound(for: undertaking, at: now.clock)
    // The step now comes from neither end.
    steps[motion.step]?.position = .unknown
    journal.entries[motion.step]?.motion = undertaking.target
    journal.entries[motion.step]?.challenge = undertaking.challenge
    commit(.note(motion.step))
    tell(motion)
  }

  private mutating func tell(_ motion: Motion) {
    steps[motion.step]?.activity = .moving(motion)
    steps[motion.step]?.reservation = nil
    tellBeginning(of: motion)
    switch motion.undertaking.cause {
    case .command(_, let sender):
      record(.began(motion.step, motion.target, by: sender.asker))
      answer(sender, .obeyed)
    case .interlock:
      steps[motion.step]?.isToRetract = false
      record(.retracts(motion.step))
    }
    publish(motion.step)
  }

  private func clearance(for motion: Motion, hasBegun: Bool) -> Clearance {
    if let hindrance = readings.hindrance(to: motion) { return .stop(hindrance) }
    if motion.obstacle != nil { return .go }
    let motion = GuardedMotion(step: motion.step, target: motion.target, place: motion.place, hasBegun: hasBegun)
    let clearance = motionGuard.clearance(for: motion, at: now)
    guard clearance == .go, let traffic else { return clearance }
    return traffic.clearance(for: motion, at: now)
  }

  // MARK: - Under way

  mutating func take(_ report: ServoReport) {
    guard let state = steps[report.step] else { return }
    if report.number == state.release {
      steps[report.step]?.release = nil
      if case .failed(let error) = report.outcome { disbelieve(report.step, "the servo is still driven: \(error)") }
      return
    }
    // A late report on an order that was given up.
    guard report.number == state.order else { return }
    switch (state.activity, report.outcome) {
    case (.preparing(let undertaking), .ready(let place)):
      begin(undertaking, from: place ?? state.position.extension)
    case (.preparing(let undertaking), .failed(let error)):
      record(.failed(report.step, error.fault, error.description, by: undertaking.sender?.asker))
      abandon(undertaking, Refusal(error == .obstructed ? .obstructed : .unavailable), .servo)
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
      halt(motion, Hindrance(ServoError.obstructed.description))
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
    if case .preparing(let undertaking)? = steps[step]?.activity { return keepWaiting(for: undertaking) }
    guard case .moving(var motion)? = steps[step]?.activity else { return }
    let gap = motion.turn(at: now.clock)
    if let (fault, reason) = motion.failure(at: now.clock, gap: gap) { return fail(motion, fault, reason) }
    switch clearance(for: motion, hasBegun: true) {
    case .stop(let hindrance):
      return halt(motion, hindrance)
    case .go where readings.sees(motion):
      return finish(motion, motion.target.position, nil)
    case .go where motion.ordered == nil:
      if let action = motion.advance(by: gap) {
        motion.ordered = now.clock
        order(step, action)
      }
    case .go, .hold:
      break
    }
    steps[step]?.activity = .moving(motion)
  }

  private mutating func keepWaiting(for undertaking: Undertaking) {
    guard let code = lapse(of: undertaking) else { return }
    if code == .expired {
      record(
        .failed(
          undertaking.step, .driver, "the servo was not ready before the command's deadline",
          by: undertaking.sender?.asker))
    }
    abandon(undertaking, Refusal(code))
  }

  // MARK: - The end

  /// Stops at once: no further pulse goes in this direction. The step backs off from an obstacle.
  mutating func halt(_ motion: Motion, _ hindrance: Hindrance) {
    record(.failed(motion.step, hindrance.fault, hindrance.description, by: motion.undertaking.sender?.asker))
    var motion = motion
    if hindrance.isInTheWay {
      if motion.backOff(from: hindrance, at: now.clock) {
        steps[motion.step]?.activity = .moving(motion)
        return
      }
      // The servo's place is unknown, so holding it could press it against what is in the way.
      if motion.place == nil { order(motion.step, .release) }
    }
    finish(motion, .unknown, hindrance.fault)
  }

  /// After a driver fault the state of the servo is unknown, so the servo is released. After other faults it is held,
  /// so that a person who stands on the step does not fall.
  private mutating func fail(_ motion: Motion, _ fault: Fault, _ reason: String) {
    record(.failed(motion.step, fault, reason, by: motion.undertaking.sender?.asker))
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
    if fault == nil, state.position == .open, let device = motion.undertaking.sender?.device {
      state.reservation = (device, now.clock + policy.reserve)
    }
    steps[motion.step] = state
    if fault == nil, position != .unknown {
      record(.ended(motion.step, position, by: motion.undertaking.sender?.asker))
    }
    tellEnd(of: motion, at: state.position, fault)
    writeState(of: motion.step)
    publish(motion.step)
    for sender in motion.senders { answer(sender, .obeyed) }
    retract(motion.step)
  }

  /// Reports a servo fault of a step at rest: otherwise nobody would notice that the servo did not obey.
  private mutating func disbelieve(_ step: StepID, _ reason: String) {
    record(.failed(step, .driver, reason, by: nil))
    tellFault(of: step, .driver)
    guard case .resting? = steps[step]?.activity else { return }
    steps[step]?.fault = .driver
    writeState(of: step)
    publish(step)
  }
}
