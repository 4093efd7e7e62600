import Domain

/// What happens to a step when an input of the vehicle changes.
extension Controller {
  /// Takes note of an input, and acts on it at once.
  mutating func sense(_ report: SensorReport) {
    let moved = readings.vehicleMoves
    guard readings.note(report) else { return }
    if report.isActive == nil { record(.lost(report.sensor)) }
    if moved != readings.vehicleMoves {
      // Only if the vehicle was seen to stand: nothing moves at the start.
      let isToRetract = readings.vehicleMoves && readings.interlock.onMoving == .retract
      for step in vehicle.steps {
        steps[step.id]?.isToRetract = isToRetract
        if !readings.vehicleMoves, steps[step.id]?.fault == .vehicleMoving { steps[step.id]?.fault = nil }
      }
    }
    for step in vehicle.steps { react(step.id) }
  }

  private mutating func react(_ step: StepID) {
    if case .moving(let motion)? = steps[step]?.activity {
      if let hindrance = readings.hindrance(to: motion) { return halt(motion, hindrance) }
      if readings.sees(motion) { finish(motion, motion.target.position, nil) }
      return
    }
    guard let state = steps[step] else { return }
    let position = readings.position(of: step, believed: state.position)
    steps[step]?.position = position
    if case .resting = state.activity, position == .unknown, journal.entries[step]?.position != .unknown,
      position != state.position
    {
      // After a restart the journal must not say that the step is still at the place that it has left.
      writeState(of: step)
    }
    if let told = state.told, told != condition(of: step) { publish(step) }
    retract(step)
  }

  /// Closes an extended step in a moving vehicle, as soon as nothing hinders the motion.
  mutating func retract(_ step: StepID) {
    guard let state = steps[step], state.isToRetract, case .resting = state.activity, state.position != .close,
      !isEnding, readings.hindrance(to: step, extends: false) == nil
    else { return }
    commit(.motion(Undertaking(retracting: step, at: now.clock)))
  }
}
