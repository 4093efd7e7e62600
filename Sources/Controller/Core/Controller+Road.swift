package import Domain
import StepProtocol

/// What is on the road, and what that means for a step that is to open.
extension Controller {
  mutating func take(_ event: RoadEvent) {
    let clock = now.clock
    guard let isFar = traffic?.take(event, at: clock) else { return }
    if isFar { record(.farRoad) }
    // The bridge has to know where the vehicle is by now.
    if case .fix = event, let wish = traffic?.wish(at: clock) { effects.append(.watch(wish)) }
  }

  /// Somebody asks who may open a step: the road is watched from now on.
  mutating func watchRoad() {
    let clock = now.clock
    traffic?.arm(at: clock)
    if let wish = traffic?.wish(at: clock) { effects.append(.watch(wish)) }
  }

  /// What the traffic guard knows of a step's road; nil where there is none, or while it does not watch.
  package func watch(of step: StepID, at clock: Int64) -> Watch? {
    guard let traffic, traffic.isWatching(at: clock) else { return nil }
    return traffic.watch(of: step, at: clock)
  }

  /// Why the traffic guard has a motion wait that is wanted; nil where it does not, or where there would be none.
  func guardRefusal(of undertaking: Undertaking) -> Refusal? {
    let step = undertaking.step
    guard let traffic, let condition = condition(of: step) else { return nil }
    // It stands there already.
    if condition.phase == .idle, condition.position == undertaking.target.position { return nil }
    let motion = GuardedMotion(step: step, target: undertaking.target, place: nil, hasBegun: false)
    switch traffic.clearance(for: motion, at: now) {
    case .go: return nil
    case .hold(let hindrance), .stop(let hindrance): return hindrance.refusal
    }
  }
}
