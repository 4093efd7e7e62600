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
  case journal
  case servo
}

/// Decides which refusals become events of their own. A rider whose program asks again and again must neither wear out
/// the vehicle's medium nor fill the space for events that wait for the operator.
struct RefusalAllowance: Sendable {
  /// The same device, step, code and cause give one event in this many milliseconds.
  static let repetition: Int64 = 60_000
  /// For all refusals together: this many at once, then one per `interval` milliseconds.
  static let burst: Int64 = 30
  static let interval: Int64 = 20_000
  static let remembered = 256

  private struct Same: Hashable, Sendable {
    let device: VerificationKey
    let step: StepID
    let code: RefusalCode
    let cause: RefusalCause?
  }

  /// When each of them last became an event, on the controller's clock.
  private var told: [Same: Int64] = [:]
  /// Until when the allowance is used up.
  private var until: Int64 = 0
  private var untold: Int64 = 0

  /// - Returns: nil if the refusal is only counted; otherwise how many were only counted before it.
  mutating func admit(
    _ sender: Sender, _ code: RefusalCode, _ cause: RefusalCause?, at clock: Int64
  ) -> Int64? {
    let same = Same(device: sender.device, step: sender.step, code: code, cause: cause)
    let isNew = told[same].map { clock - $0 >= Self.repetition } ?? true
    guard isNew, max(until, clock) - clock <= Self.interval * (Self.burst - 1) else {
      untold += 1
      return nil
    }
    until = max(until, clock) + Self.interval
    if told.count >= Self.remembered { told = told.filter { clock - $0.value < Self.repetition } }
    told[same] = clock
    defer { untold = 0 }
    return untold
  }
}

/// What the operator is told.
extension Controller {
  mutating func tell(_ content: VehicleEvent.Content) { effects.append(.tell(content)) }

  /// The program has started.
  mutating func tellStart() {
    tell(.init(.started, time: now.wall))
    for step in vehicle.steps where journal.entries[step.id]?.motion != nil {
      tell(.init(.fault, time: now.wall, step: step.id, code: Fault.interrupted.rawValue))
    }
  }

  mutating func tellRefusal(of sender: Sender, _ code: RefusalCode, _ cause: RefusalCause?) {
    guard let untold = refusals.admit(sender, code, cause, at: now.clock) else { return }
    tell(
      .init(
        .refused, time: now.wall, step: sender.step, position: sender.asked, token: sender.asker.token,
        code: code.rawValue,
        cause: cause?.rawValue, method: sender.asker.method?.rawValue, zone: sender.asker.zone?.rawValue,
        untold: untold > 0 ? untold : nil))
  }

  mutating func tellBeginning(of motion: Motion) {
    let sender = motion.undertaking.sender
    tell(
      .init(
        .began, time: now.wall, step: motion.step, position: motion.target == .open ? .open : .close,
        token: sender?.asker.token, cause: sender == nil ? "vehicle_moving" : nil,
        method: sender?.asker.method?.rawValue, zone: sender?.asker.zone?.rawValue))
  }

  mutating func tellEnd(of motion: Motion, at position: Position, _ fault: Fault?) {
    tell(
      .init(
        .ended, time: now.wall, step: motion.step, position: .init(rawValue: position.rawValue),
        token: motion.undertaking.sender?.asker.token, code: fault?.rawValue))
  }

  mutating func tellStop(by sender: Sender) {
    tell(.init(.stopped, time: now.wall, step: sender.step, token: sender.asker.token))
  }

  mutating func tellFault(of step: StepID, _ fault: Fault) {
    tell(.init(.fault, time: now.wall, step: step, code: fault.rawValue))
  }
}
