import Domain
import StepProtocol

/// Which check a refused command failed, for the operator alone. Riders get only the refusal's code, which tells an
/// attacker less.
package enum RefusalCause: String, Sendable {
  /// The command came on the topic of another step.
  case otherTopic = "other_topic"
  case notInToken = "not_in_token"
  case tokenVehicle = "token_vehicle"
  case commandVehicle = "command_vehicle"
  /// The policy does not accept this kind of proof.
  case method
  /// The policy does not accept a proof that can be copied.
  case copyable
  case inFuture = "in_future"
  case tooOld = "too_old"
  /// The device has sent too many wrong minors lately.
  case guessesUsedUp = "guesses_used_up"
  case beaconMissing = "beacon_missing"
  case otherNearer = "other_nearer"
  case wrongMinor = "wrong_minor"
  case wrongLabel = "wrong_label"
  case unknownTag = "unknown_tag"
  /// A dynamic tag's text was not made with the keys of the tag.
  case forgedTag = "forged_tag"
  /// The dynamic tag's reading was used before, or is older than a used one.
  case usedReading = "used_reading"
  /// The link on which the command came is weaker than the policy wants.
  case weakLink = "weak_link"
  case journal
  case servo
}

/// Decides which refusals become events of their own. A rider whose program asks again and again must neither wear out
/// the vehicle's medium nor fill the space for events that wait for the operator.
struct ReportedRefusals: Sendable {
  private struct Same: Hashable, Sendable {
    let device: VerificationKey
    let step: StepID
    let code: RefusalCode
    let cause: RefusalCause?
  }

  /// The same device, step, code and cause give one event a minute.
  private var repetitions = Allowances<Same>(1, in: 60_000)
  /// For all refusals together, milliseconds.
  private var allowance = Allowance(burst: 30, interval: 20_000)
  private var untold: Int64 = 0

  /// - Returns: nil if the refusal is only counted; otherwise how many were only counted before it.
  mutating func admit(
    _ sender: Sender, _ code: RefusalCode, _ cause: RefusalCause?, at clock: Int64
  ) -> Int64? {
    let same = Same(device: sender.device, step: sender.step, code: code, cause: cause)
    guard !repetitions.isUsedUp(by: same, at: clock), allowance.take(at: Double(clock)) else {
      untold += 1
      return nil
    }
    repetitions.note(same, at: clock)
    defer { untold = 0 }
    return untold
  }
}

/// What the operator is told.
extension Controller {
  mutating func report(_ content: VehicleEvent.Content) { effects.append(.report(content)) }

  /// The program has started.
  mutating func reportStart() {
    report(.init(.started, time: now.wall))
    for step in vehicle.steps where journal.entries[step.id]?.motion != nil {
      report(.init(.fault, time: now.wall, step: step.id, code: Fault.interrupted.rawValue))
    }
  }

  mutating func reportRefusal(of sender: Sender, _ code: RefusalCode, _ cause: RefusalCause?) {
    guard let untold = refusals.admit(sender, code, cause, at: now.clock) else { return }
    report(
      .init(
        .refused, time: now.wall, step: sender.step, position: sender.asked, token: sender.asker.token,
        code: code.rawValue,
        cause: cause?.rawValue, method: sender.asker.method?.rawValue, zone: sender.asker.zone?.rawValue,
        untold: untold > 0 ? untold : nil))
  }

  mutating func reportBeginning(of motion: Motion) {
    let sender = motion.request.sender
    report(
      .init(
        .began, time: now.wall, step: motion.step, position: motion.target == .open ? .open : .close,
        token: sender?.asker.token, cause: sender == nil ? "vehicle_moving" : nil,
        method: sender?.asker.method?.rawValue, zone: sender?.asker.zone?.rawValue))
  }

  mutating func reportEnd(of motion: Motion, at position: Position, _ fault: Fault?) {
    report(
      .init(
        .ended, time: now.wall, step: motion.step, position: .init(rawValue: position.rawValue),
        token: motion.request.sender?.asker.token, code: fault?.rawValue))
  }

  mutating func reportStop(by sender: Sender) {
    report(.init(.stopped, time: now.wall, step: sender.step, token: sender.asker.token))
  }

  mutating func reportFault(of step: StepID, _ fault: Fault) {
    report(.init(.fault, time: now.wall, step: step, code: fault.rawValue))
  }
}
