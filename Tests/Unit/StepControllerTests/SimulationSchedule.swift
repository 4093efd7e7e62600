import Domain
import StepController
import StepProtocol
import TestSupport

/// What is fixed for one simulation: how the vehicle is built and wired.
struct SimulationSetting: Sendable {
  var travel: Int64 = 900
  /// Milliseconds.
  var reserve: Int64 = 0
  var sensors: Set<SensorID> = []
  var onMoving = Interlock.OnMoving.warn
  var countsLostAsMoving = true
  /// Whether `clear` is a light beam, which sees what is in the way, or an edge that feels it.
  var hasBeam = true
  /// How late a tick can come, milliseconds.
  var jitter: Int64 = 0
  /// When in its frame the servo reads, milliseconds.
  var phase: Int64 = 0
  /// Newtons.
  var friction = 10.0
  /// Whether the controller is told that nothing is wired, which it must not survive.
  var isDeaf = false
  /// Whether an honest rider opens a step at the end, when all is well again.
  var endsWithOpening = false

  static let allSensors: [SensorID] = [
    .clear(left), .clear(right), .endOpen(left), .endClosed(left), .endOpen(right), .endClosed(right), .standing,
    .enable,
  ]

  func hasEnds(_ step: StepID) -> Bool { sensors.contains(.endOpen(step)) && sensors.contains(.endClosed(step)) }
}

/// What happens in a simulation at one moment.
enum SimulatedAction: Sendable {
  /// A rider asks for a challenge and sends the command as soon as it is there, which then takes its time.
  case command(rider: Int, StepID, Command.Move.Target, deadline: Int64, transit: Int64)
  case stop(rider: Int, StepID)
  /// Something that was sent before is sent again.
  case replay(Int)
  /// Something comes into the way at this place; nil: it goes.
  case obstacle(StepID, Double?, stiffness: Double)
  /// Somebody steps on the step, or off it: kilograms.
  case stand(StepID, Double)
  case jam(StepID, Double)
  /// By hand, if the servo is not driven.
  case push(StepID, Double)
  case drive(Bool)
  case button(isPressed: Bool)
  case wire(SensorID, WiredInput.Flaw)
  /// The controller's loop does nothing for so long.
  case stall(Int64)
  case journal(SimulatedJournalMood)
  case servo(StepID, SimulatedServoMood)
  case reconnect
  case end
  /// The process is killed and started again; what waits to be written may be written.
  case kill(downtime: Int64, isWritten: Bool)
  case powerCut(downtime: Int64)
  case repair
}

enum SimulatedJournalMood: Sendable {
  case takes(Int64)
  case fails
  case silent
}

enum SimulatedServoMood: Sendable {
  case takes(Int64)
  /// The order is not carried out.
  case fails(ServoError)
  /// It is carried out, and then something fails.
  case failsLate
  case releaseFails
  case silent
}

/// A random schedule, determined by its seed.
struct SimulationSchedule: Sendable, CustomStringConvertible {
  var setting: SimulationSetting
  /// At which time of the simulation, milliseconds.
  var actions: [(at: Int64, action: SimulatedAction)]

  init(setting: SimulationSetting, _ actions: [(at: Int64, action: SimulatedAction)]) {
    self.setting = setting
    self.actions = actions
  }

  init(_ seed: UInt64) {
    var random = SplitMix(seed)
    setting = SimulationSetting(&random)
    actions = []
    var time: Int64 = 100
    let commands = Int.random(in: 2...5, using: &random)
    var last = (left, Command.Move.Target.close)
    for _ in 0..<commands {
      // Mostly back and forth, so that steps are at either end.
      let isSame = chance(65, &random)
      let step = isSame ? last.0 : [left, right].randomElement(using: &random)!
      let target: Command.Move.Target = chance(80, &random) ? (last.1 == .open ? .close : .open) : last.1
      last = (step, target)
      actions.append(
        (
          time,
          .command(
            rider: chance(75, &random) ? 0 : 1, step, target,
            deadline: chance(85, &random) ? 5_000 : Int64.random(in: 1...9_000, using: &random),
            transit: chance(80, &random) ? 0 : Int64.random(in: 1...6_000, using: &random))
        ))
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        let moment = time + Int64.random(in: -200...(setting.travel + 600), using: &random)
        let (action, remedy) = SimulatedAction.random(step, setting, &random)
        actions.append((max(moment, 0), action))
        if let remedy, chance(70, &random) {
          actions.append((moment + Int64.random(in: 20...3_000, using: &random), remedy))
        }
      }
      time +=
        chance(60, &random)
        ? setting.travel + Int64.random(in: 200...1_500, using: &random) : Int64.random(in: 5...1_200, using: &random)
    }
    actions.sort { $0.at < $1.at }
  }

  /// When the last thing happens.
  var end: Int64 {
    actions.map { time, action in
      if case .command(_, _, _, _, let transit) = action { time + transit } else { time }
    }.max() ?? 0
  }

  var description: String {
    let sensors = setting.sensors.map(\.words).sorted().joined(separator: ", ")
    return
      ([
        "  \(setting.travel) ms of travel; wired: \(sensors.isEmpty ? "nothing" : sensors)"
          + "; \(setting.hasBeam ? "beam" : "edge"), \(setting.onMoving), jitter \(setting.jitter) ms,"
          + " reserve \(setting.reserve) ms"
      ] + actions.map { "  at \($0.at): \($0.action)" }).joined(separator: "\n")
  }

  // MARK: - Shrinking

  /// The smallest schedule that can be found for which `fails` still holds.
  func shrunk(tries: Int = 400, while fails: (SimulationSchedule) -> Bool) -> SimulationSchedule {
    var best = self
    var remaining = tries
    func adopt(_ candidate: SimulationSchedule) -> Bool {
      guard remaining > 0 else { return false }
      remaining -= 1
      guard fails(candidate) else { return false }
      best = candidate
      return true
    }
    // Ever smaller runs of actions are left out.
    var size = max(1, actions.count / 2)
    while true {
      var start = 0
      var hasShrunk = false
      while start < best.actions.count {
        var candidate = best
        candidate.actions.removeSubrange(start..<min(start + size, best.actions.count))
        if adopt(candidate) { hasShrunk = true } else { start += size }
      }
      if size == 1, !hasShrunk { break }
      if !hasShrunk || size > 1 { size = max(1, size / 2) }
    }
    // Then what is left is made plainer: fewer wires, and shorter times.
    for sensor in SimulationSetting.allSensors where best.setting.sensors.contains(sensor) {
      var candidate = best
      candidate.setting.sensors.remove(sensor)
      _ = adopt(candidate)
    }
    var plain = best
    (plain.setting.jitter, plain.setting.phase, plain.setting.reserve) = (0, 0, 0)
    _ = adopt(plain)
    for index in best.actions.indices {
      for simpler in best.actions[index].action.simpler {
        var candidate = best
        candidate.actions[index].action = simpler
        _ = adopt(candidate)
      }
      var earlier = best
      let pause = earlier.actions[index].at - (index == 0 ? 0 : earlier.actions[index - 1].at)
      if pause > 100 {
        for later in index..<earlier.actions.count { earlier.actions[later].at -= pause / 2 }
        _ = adopt(earlier)
      }
    }
    return best
  }
}

private func chance(_ percent: Int, _ random: inout SplitMix) -> Bool {
  Int.random(in: 0..<100, using: &random) < percent
}

extension SimulationSetting {
  init(_ random: inout SplitMix) {
    travel = [500, 900, 1_500].randomElement(using: &random)!
    reserve = chance(70, &random) ? 0 : 30_000
    for step in [left, right] {
      if chance(70, &random) { sensors.insert(.clear(step)) }
      if chance(60, &random) { sensors.formUnion([.endOpen(step), .endClosed(step)]) }
    }
    if chance(60, &random) { sensors.insert(.standing) }
    if chance(60, &random) { sensors.insert(.enable) }
    onMoving = chance(50, &random) ? .retract : .warn
    countsLostAsMoving = chance(80, &random)
    hasBeam = chance(50, &random)
    jitter = chance(50, &random) ? 0 : Int64.random(in: 1...15, using: &random)
    phase = Int64.random(in: 0..<10, using: &random) * 2
    friction = Double.random(in: 6...20, using: &random)
    endsWithOpening = chance(25, &random)
  }
}

extension SimulatedAction {
  /// Something that can go wrong near a step, and what ends it.
  fileprivate static func random(
    _ step: StepID, _ setting: SimulationSetting, _ random: inout SplitMix
  ) -> (SimulatedAction, SimulatedAction?) {
    switch Int.random(in: 0..<100, using: &random) {
    case ..<18:
      let stiffness = chance(60, &random) ? 5_000.0 : 20_000
      return (
        .obstacle(step, Double.random(in: 0.03...0.97, using: &random), stiffness: stiffness),
        .obstacle(step, nil, stiffness: 0)
      )
    case ..<24: return (.stop(rider: Int.random(in: 0...1, using: &random), step), nil)
    case ..<32: return (.drive(true), .drive(false))
    case ..<38: return (.button(isPressed: true), .button(isPressed: false))
    case ..<46:
      let sensor = setting.sensors.sorted { $0.words < $1.words }.randomElement(using: &random) ?? .enable
      return (.wire(sensor, WiredInput.Flaw.allCases.randomElement(using: &random)!), .wire(sensor, .healthy))
    case ..<53:
      return (.stall(Int64.random(in: 10...(chance(70, &random) ? 300 : 3_000), using: &random)), nil)
    case ..<60:
      let mood: [SimulatedJournalMood] = [.takes(.random(in: 1...1_500, using: &random)), .fails, .silent]
      return (.journal(mood.randomElement(using: &random)!), .journal(.takes(1)))
    case ..<70:
      let mood: [SimulatedServoMood] = [
        .takes(.random(in: 1...400, using: &random)), .fails(.obstructed), .fails(.failed("gone")), .failsLate,
        .releaseFails, .silent,
      ]
      return (.servo(step, mood.randomElement(using: &random)!), .servo(step, .takes(0)))
    case ..<74:
      return (.stand(step, Double.random(in: 3...25, using: &random)), .stand(step, 0))
    case ..<76: return (.jam(step, 600), .jam(step, 0))
    case ..<79: return (.push(step, Double.random(in: 0...1, using: &random)), nil)
    case ..<84: return (.replay(Int.random(in: 0..<8, using: &random)), nil)
    case ..<86: return (.reconnect, nil)
    case ..<88: return (.end, nil)
    case ..<95:
      return (.kill(downtime: Int64.random(in: 0...2_000, using: &random), isWritten: chance(30, &random)), nil)
    case ..<97: return (.powerCut(downtime: Int64.random(in: 20...2_000, using: &random)), nil)
    default: return (.repair, nil)
    }
  }

  /// The same with plainer numbers.
  fileprivate var simpler: [SimulatedAction] {
    switch self {
    case .command(let rider, let step, let target, _, let transit):
      [
        .command(rider: rider, step, target, deadline: 5_000, transit: 0),
        .command(rider: 0, step, target, deadline: 5_000, transit: transit),
        .command(rider: rider, step, target, deadline: 5_000, transit: transit / 2),
      ]
    case .stop(_, let step): [.stop(rider: 0, step)]
    case .obstacle(let step, .some, let stiffness): [.obstacle(step, 0.5, stiffness: stiffness)]
    case .stall(let time): [.stall(300), .stall(time / 2)]
    case .kill(_, let isWritten): [.kill(downtime: 0, isWritten: false), .kill(downtime: 0, isWritten: isWritten)]
    case .powerCut: [.powerCut(downtime: 20)]
    case .journal(.takes(let time)): [.journal(.takes(time / 2))]
    case .servo(let step, .takes(let time)): [.servo(step, .takes(time / 2))]
    default: []
    }
  }
}

extension SimulatedAction: CustomStringConvertible {
  var description: String {
    switch self {
    case .command(let rider, let step, let target, let deadline, let transit):
      "rider \(rider) tells \(step) to \(target), within \(deadline) ms, \(transit) ms on the way"
    case .stop(let rider, let step): "rider \(rider) stops \(step)"
    case .replay(let index): "payload \(index) is sent again"
    case .obstacle(let step, let place?, let stiffness): "something of \(stiffness) N/m stands at \(place) of \(step)"
    case .obstacle(let step, nil, _): "nothing is in \(step)'s way any more"
    case .stand(let step, let load): "\(load) kg stand on \(step)"
    case .jam(let step, let force): "\(step) is held fast with \(force) N"
    case .push(let step, let place): "\(step) is pushed to \(place)"
    case .drive(let isMoving): isMoving ? "the vehicle drives" : "the vehicle stands"
    case .button(let isPressed): isPressed ? "the stop button is pressed" : "the stop button is released"
    case .wire(let sensor, let flaw): "the wire of \(sensor.words) is \(flaw)"
    case .stall(let time): "the loop stalls for \(time) ms"
    case .journal(let mood): "the journal: \(mood)"
    case .servo(let step, let mood): "the servo of \(step): \(mood)"
    case .reconnect: "the broker is back"
    case .end: "the program is asked to end"
    case .kill(let downtime, let isWritten):
      "killed, and started \(downtime) ms later\(isWritten ? "; the journal is written" : "")"
    case .powerCut(let downtime): "the power is cut for \(downtime) ms"
    case .repair: "everything is repaired"
    }
  }
}

extension SensorID {
  var words: String {
    switch self {
    case .clear(let step): "clear of \(step)"
    case .endOpen(let step): "open end of \(step)"
    case .endClosed(let step): "closed end of \(step)"
    case .standing: "standing"
    case .enable: "enable"
    }
  }
}
