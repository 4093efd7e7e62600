package import Domain
import StepProtocol

/// Traffic on the road, and its meaning for a step that is to open.
extension Controller {
  mutating func roadChanged(_ event: RoadEvent) {
    let clock = now.clock
    guard let isFar = traffic?.note(event, at: clock) else { return }
    if isFar { log(.farRoad) }
    // The bridge needs the vehicle's present place.
    if case .fix = event, let wish = traffic?.wish(at: clock) { effects.append(.watch(wish)) }
  }

  /// Watches the road from now on, because a rider who may open a step has asked.
  mutating func watchRoad() {
    let clock = now.clock
    traffic?.arm(at: clock)
    if let wish = traffic?.wish(at: clock) { effects.append(.watch(wish)) }
  }

  /// What the traffic guard knows of a step's road; nil if there is no guard, or while it does not watch.
  package func watch(of step: StepID, at clock: Int64) -> Watch? {
    guard let traffic, traffic.isWatching(at: clock) else { return nil }
    return traffic.watch(of: step, at: clock)
  }

  /// Why a guard makes a requested motion wait; nil if none does, or if the step would not move.
  func guardRefusal(of request: MotionRequest) -> Refusal? {
    let step = request.step
    guard let condition = condition(of: step) else { return nil }
    // The step is already there.
    if condition.phase == .idle, condition.position == request.target.position { return nil }
    let motion = GuardedMotion(step: step, target: request.target, place: nil, hasBegun: false)
    // A guard that stops the motion does so when it begins, and that is a fault.
    if case .hold(let blockReason) = clearance(for: motion) { return blockReason.refusal }
    return nil
  }
}
