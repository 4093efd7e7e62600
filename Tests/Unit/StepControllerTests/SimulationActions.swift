import Domain
import StepController
import StepProtocol
import TestSupport

/// What happens to the controller and to the vehicle.
extension Simulation {
  func act(_ action: SimulatedAction) {
    switch action {
    case .command(let rider, let step, let target, let deadline, let transit):
      totals.commands += 1
      let kind = rider * 2 + index(step)
      let question = crew.question(questions[kind], by: rider, about: step)
      questions[kind] += 1
      plans[CommandDigest(of: question).bytes] = Plan(
        rider: rider, step: step, target: target, deadline: deadline, transit: transit)
      send(question, to: step)
    case .stop(let rider, let step):
      guard let lastEpoch else { return }
      totals.stops += 1
      let payload = crew.riders[rider].command(step, .stop(epoch: lastEpoch))
      stops[payload] = (rider, step, lastEpoch)
      send(payload, to: step)
    case .replay(let number):
      if sent.indices.contains(number) { send(sent[number].payload, to: sent[number].step) }
    case .obstacle(let step, let place?, let stiffness):
      let mechanism = plants[index(step)].mechanism
      let isOutside = place > mechanism.place
      // It comes up to the step, and not into it.
      let free = isOutside ? max(place, mechanism.place + 0.01) : min(place, mechanism.place - 0.01)
      guard (0.02...0.98).contains(free) else { return }
      plants[index(step)].mechanism.obstacle = .init(place: free, isOutside: isOutside, stiffness: stiffness)
    case .obstacle(let step, nil, _):
      plants[index(step)].mechanism.obstacle = nil
    case .stand(let step, let load):
      plants[index(step)].mechanism.load = load
      plants[index(step)].late = now
    case .jam(let step, let force):
      plants[index(step)].mechanism.jam = force
      (plants[index(step)].isDisturbed, plants[index(step)].wasJammed) = (true, true)
    case .push(let step, let place):
      push(index(step), to: place)
    case .drive(let drives):
      isDriving = drives
    case .button(let isPressed):
      self.isPressed = isPressed
    case .wire(let sensor, let flaw):
      guard let index = inputs.firstIndex(where: { $0.sensor == sensor }) else { return }
      inputs[index].wire.flaw = flaw
      if case .clear(let step) = sensor, flaw == .stuck { plants[self.index(step)].wasJammed = true }
      sense(index)
    case .stall(let time):
      stalledUntil = max(stalledUntil, now + time)
      stalled = stalledUntil
    case .journal(let mood):
      journalMood = mood
      writeJournal()
    case .servo(let step, let mood):
      plants[index(step)].mood = mood
      work(index(step))
    case .reconnect:
      post(.connected)
    case .end:
      guard controller != nil else { return }
      isEnding = true
      post(.ending)
    case .kill(let downtime, let isWritten):
      if isWritten { journal.write() }
      kill(downtime: downtime)
    case .powerCut(let downtime):
      kill(downtime: downtime)
      for index in plants.indices { plants[index].mechanism.set(wire: nil) }
    case .repair:
      repair()
    }
    updateContacts(bounces: true)
  }

  /// Somebody moves a step by hand, as fast as a hand does.
  func push(_ index: Int, to place: Double) {
    let mechanism = plants[index].mechanism
    guard !mechanism.isDriven, mechanism.obstacle == nil, mechanism.place != place else { return }
    plants[index].isDisturbed = true
    plants[index].pushed = now
    plants[index].mechanism.push(to: place, by: 0.02)
    updateContacts(bounces: true)
    at(now + 10) { [unowned self] in push(index, to: place) }
  }

  func repair() {
    act(.journal(.takes(0)))
    for step in [left, right] {
      act(.servo(step, .takes(0)))
      act(.jam(step, 0))
      act(.stand(step, 0))
      act(.obstacle(step, nil, stiffness: 0))
    }
    for (sensor, _) in inputs { act(.wire(sensor, .healthy)) }
    act(.drive(false))
    act(.button(isPressed: false))
  }

  func send(_ payload: [UInt8], to step: StepID) {
    sent.append((step, payload))
    post(.request(Request(payload, on: step, isRetained: false)))
  }
}
