package import Domain
import StepProtocol

/// Traffic on the road, and its meaning for a step that is to open.
extension Controller {
  mutating func take(_ event: RoadEvent) {
    let clock = now.clock
    guard let isFar = traffic?.take(event, at: clock) else { return }
    if isFar { record(.farRoad) }
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

  /// Why the traffic guard makes a requested motion wait; nil if it does not, or if the step would not move.
  func guardRefusal(of undertaking: Undertaking) -> Refusal? {
    let step = undertaking.step
    guard let traffic, let condition = condition(of: step) else { return nil }
    // The step is already there.
    if condition.phase == .idle, condition.position == undertaking.target.position { return nil }
    let motion = GuardedMotion(step: step, target: undertaking.target, place: nil, hasBegun: false)
    switch traffic.clearance(for: motion, at: now) {
    case .go: return nil
    case .hold(let hindrance), .stop(let hindrance): return hindrance.refusal
    }
  }
}
