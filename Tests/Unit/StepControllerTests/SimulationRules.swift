import Domain
import StepController
import StepProtocol
import TestSupport

/// What must hold. It is looked at where it counts: in the pulses on the wires, in the places and speeds of the steps,
/// and in what the signed statements say at that moment.
extension Simulation {
  // MARK: - What the controller was told

  func note(_ input: Controller.Input) {
    switch input {
    case .sensed(let report):
      // A switch that bounces is told of more than once.
      if told[report.sensor].map({ $0.isActive != report.isActive }) ?? true {
        told[report.sensor] = (report.isActive, now)
      }
      noteSensor(report.sensor)
    case .request(let request):
      let digest = CommandDigest(of: request.payload).bytes
      let isNew = arrived.insert(digest).inserted
      if let stop = stops[request.payload], isNew, stop.epoch == epoch {
        let index = index(stop.step)
        plants[index].stopped = (handled, now)
        plants[index].motion?.isStopped = true
        plants[index].isHeld = true
        expectRest(of: index, "a stop was obeyed")
        deliveries.removeAll { $0.plan.step == stop.step }
      }
      guard let move = moves[request.payload], isNew, move.life == life else { return }
      guard move.given > plants[index(request.step)].stopped.turn, now - boot < move.deadline else { return }
      deliveries.append(Delivery(digest: digest, plan: move.plan, deadline: move.deadline))
      reverse(index(request.step), move.plan, digest)
    case .journal, .servo, .notice, .heard, .ear, .listened, .road, .tick, .started, .connected, .rules, .ending:
      break
    }
  }

  func noteSensor(_ sensor: SensorID) {
    switch sensor {
    case .clear(let step):
      if !isActive(sensor) { noteObstruction(of: index(step)) }
    case .endOpen(let step), .endClosed(let step):
      let life = life
      at(now + 50) { [unowned self] in
        if self.life == life, stalled < now - 50, plants[index(step)].phase.isAtRest { checkPosition(of: index(step)) }
      }
    case .enable:
      guard !isActive(.enable) else { return }
      for index in plants.indices {
        plants[index].isHeld = true
        expectRest(of: index, "`enable` is inactive")
      }
    case .standing:
      break
    }
  }

  /// A motion that is to end now has ended before long, and is said to have.
  func expectRest(of index: Int, _ reason: String) {
    guard let motion = plants[index].motion else { return }
    let (life, number) = (life, totals.motions)
    at(now + 300) { [unowned self] in
      guard self.life == life, totals.motions == number, stalled < now - 300, plants[index].late < now - 300,
        case .takes(let time) = plants[index].mood, time < 100, plants[index].motion?.command == motion.command
      else { return }
      if plants[index].phase == .moving { violate("goes on", "\(plants[index].id) still moves: \(reason)") }
    }
  }

  func reverse(_ index: Int, _ plan: Plan, _ digest: [UInt8]) {
    guard let motion = plants[index].motion, motion.rider == plan.rider, motion.target != plan.target,
      !motion.isStopped, motion.obstructed == nil, plants[index].phase == .moving
    else { return }
    let place = plants[index].mechanism.wire
    plants[index].motion?.target = plan.target
    plants[index].motion?.turned = place
    plants[index].motion?.command = digest
    plants[index].inched = nil
  }

  func noteObstruction(of index: Int) {
    guard let motion = plants[index].motion, motion.obstructed == nil, plants[index].phase == .moving else { return }
    totals.backOffs += 1
    let mechanism = plants[index].mechanism
    let heading = plants[index].heading
    plants[index].motion?.obstructed = mechanism.wire ?? mechanism.place
    plants[index].motion?.heading = heading ?? motion.target
    let (life, number, noted) = (life, totals.motions, now)
    at(now + patience) { [unowned self] in
      guard self.life == life else { return }
      checkPressure(index)
      if totals.motions == number, let place = mechanism.wire, let start = motion.start, motion.turned == nil {
        checkBackOff(of: index, from: place, start: start, since: noted)
      }
    }
  }

  /// What is in the way was given some room, unless something else held the step or let it go meanwhile.
  func checkBackOff(of index: Int, from place: Double, start: Double, since time: Int64) {
    let plant = plants[index]
    guard let wire = plant.mechanism.wire, !plant.isHeld, case .takes(0) = plant.mood, stalled < time,
      plant.late < time, let (isActive, since) = told[.clear(plant.id)], isActive == false, since == time
    else { return }
    // A tenth of it is left to what the pulse had before the first stride.
    if abs(wire - place) < 0.9 * min(0.05, abs(place - start)) {
      violate("does not back off", "\(plant.id) was obstructed at \(place), and its pulse is at \(wire)")
    }
  }

  // MARK: - What it orders

  /// What an order may do, as things stand when it is given.
  func judge(_ order: ServoOrder, of index: Int) -> Licence {
    let (step, plant) = (order.step, plants[index])
    // Each motion begins with its servo's set-up.
    if case .prepare = order.action { plants[index].motion = nil }
    if plants[index].motion == nil { begin(order, of: index) }
    var licence = Licence()
    guard let motion = plants[index].motion else { return licence }
    if case .prepare = order.action { return licence }
    var ban: String?
    if !isActive(.enable) { ban = "`enable` is inactive" }
    if motion.isStopped { ban = "a stop was obeyed" }
    if let ban { (licence.closing, licence.opening) = (ban, ban) }
    if plant.phase != .moving { ban = ban ?? "it is said to be at rest" }
    let entry = journal.medium.entries[step]
    if entry?.motion == nil, entry?.position != .unknown { ban = ban ?? "the journal knows nothing of it" }
    if let ban { (licence.closing, licence.opening) = (licence.closing ?? ban, licence.opening ?? ban) }
    // Only back from what is in the way, and only a little.
    if motion.obstructed != nil || !isActive(.clear(step)) {
      if motion.heading ?? motion.target == .open {
        licence.opening = licence.opening ?? "something is in the way"
      } else {
        licence.closing = licence.closing ?? "something is in the way"
      }
    }
    if !isActive(.standing), motion.target == .open || motion.obstructed == nil {
      licence.opening = licence.opening ?? "the vehicle moves"
    }
    return licence
  }

  /// A step at rest is to move: by whose leave?
  func begin(_ order: ServoOrder, of index: Int) {
    totals.motions += 1
    let wanted: Command.Move.Target? =
      switch order.action {
      case .prepare(_, let target): target == .open ? .open : .close
      default: nil
      }
    let clock = now - boot
    plants[index].isHeld = false
    plants[index].heading = nil
    plants[index].inched = nil
    if let delivery = deliveries.first(where: {
      $0.plan.step == order.step && clock < $0.deadline && (wanted == nil || $0.plan.target == wanted)
    }) {
      plants[index].motion = SimulatedMotion(
        target: delivery.plan.target, rider: delivery.plan.rider, start: plants[index].mechanism.wire,
        command: delivery.digest)
    } else if wanted != .open, setting.onMoving == .retract, let (_, since) = told[.standing], !isActive(.standing),
      since > plants[index].stopped.at
    {
      totals.retractions += 1
      plants[index].motion = SimulatedMotion(target: .close, rider: nil)
    } else if case .move(let place) = order.action, place == plants[index].mechanism.wire {
      // It is held where it is.
    } else {
      violate("unasked", "\(order.step) is to do \(order.action), and nobody who may has asked for it")
    }
  }

  // MARK: - What reaches the wire

  func checkPulse(_ place: Double, of index: Int, _ licence: Licence) {
    let plant = plants[index]
    let stride = profile.longestStride
    guard let before = plant.mechanism.wire else {
      if let ban = licence.opening, licence.closing != nil { violate("driven", "\(plant.id) is driven: \(ban)") }
      let jump = abs(place - plant.mechanism.place)
      if jump > 2 * stride + 0.02, !plant.isDisturbed || isSeen(index), now - plant.pushed > 100 {
        violate("thrown", "\(plant.id) stands at \(plant.mechanism.place) and is thrown to \(place)")
      }
      plants[index].credit = 0
      plants[index].changed = now
      return
    }
    let change = place - before
    // Frames of the servo and ticks of the loop are not in step, so that two ticks can fall into one frame.
    let credit = min(2 * stride, plant.credit + stride * Double(now - plant.changed) / Double(MotionProfile.tick))
    plants[index].credit = credit - abs(change)
    plants[index].changed = now
    if abs(change) > credit + 1e-9 || abs(change) > stride + 1e-9 {
      violate("too fast", "\(plant.id)'s pulse goes from \(before) to \(place), and \(min(credit, stride)) is allowed")
    }
    checkDirection(change, to: place, of: index, licence)
    if change != 0 { plants[index].heading = change > 0 ? .open : .close }
  }

  func checkDirection(_ change: Double, to place: Double, of index: Int, _ licence: Licence) {
    let plant = plants[index]
    guard abs(change) > 1e-9 else { return }
    if let ban = change > 0 ? licence.opening : licence.closing {
      violate(change > 0 ? "extends: \(ban)" : "closes: \(ban)", "\(plant.id) goes to \(place), and \(ban)")
    }
    guard let motion = plant.motion, (change > 0) != (motion.target == .open) else { return }
    if let obstructed = motion.obstructed {
      if abs(place - obstructed) > 0.05 + 2 * profile.longestStride {
        violate("backs off too far", "\(plant.id) goes back from \(obstructed) to \(place)")
      }
    } else if let turned = motion.turned {
      // It slows down before it turns.
      if abs(place - turned) > 0.17 + 2 * profile.longestStride {
        violate("does not turn", "\(plant.id) was turned at \(turned), and is at \(place)")
      }
    } else if plant.late != now, abs(change) > 0.03 {
      violate("wrong way", "\(plant.id) was told to \(motion.target) and goes to \(place)")
    }
  }

  func checkInch(_ place: Double, of index: Int, _ licence: Licence) {
    let plant = plants[index]
    if let inched = plant.inched, now - inched < 300, plant.late != now {
      violate("too fast", "\(plant.id) gets pulses after \(now - inched) ms")
    }
    (plants[index].inched, plants[index].pulsed) = (now, now)
    let change = place - plant.mechanism.place
    if abs(change) > 0.03 { checkDirection(change, to: place, of: index, licence) }
  }

  // MARK: - What physics does

  /// Looks at a step that moves or could, at each frame.
  func look(at index: Int) {
    let plant = plants[index]
    let mechanism = plant.mechanism
    guard mechanism.latched != nil, now - plant.late > 300 else { return }
    let speed = abs(mechanism.speed)
    // A load sways at the servo before it is at rest.
    let sway = Int64(mechanism.load * 20)
    let isInching = now - plant.pulsed < 200
    if !plant.isDisturbed {
      let top = profile.longestStride / Double(MotionProfile.tick) * 1000
      if !isInching, speed > 1.6 * top + 0.4 { violate("too fast", "\(plant.id) moves with \(speed) ways a second") }
      if plant.phase != .moving, now - plant.rested > 150 + sway, speed > 0.15, controller != nil {
        violate("moves at rest", "\(plant.id) moves with \(mechanism.speed) ways a second and is said to be at rest")
      }
      if let (_, since) = told[.standing], !isActive(.standing), now - max(since, stalled) > 200 + sway,
        now - plant.rested > 200 + sway, mechanism.speed > 0.15, mechanism.place > 0.02,
        plant.motion?.obstructed == nil
      {
        violate("extends: the vehicle moves", "\(plant.id) extends at \(mechanism.place) though the vehicle moves")
      }
    }
    checkPressure(index)
  }

  /// Two periods, and the time that backing off takes.
  var patience: Int64 { 2 * MotionProfile.tick + setting.travel * 2 / 5 + 200 }

  /// What is in the way is not pressed for longer than it takes to back off.
  func checkPressure(_ index: Int) {
    let plant = plants[index]
    // At the fastest travel the servo is behind its pulse by more than the back-off: two strides, and its lag.
    let limit = 10 + plant.mechanism.friction + plant.mechanism.load + (setting.travel < 600 ? 200 : 20)
    guard plant.mechanism.pressure > 0, let (isActive, since) = told[.clear(plant.id)], isActive == false,
      !plant.isHeld, case .takes(0) = plant.mood, !plant.wasJammed,
      now - max(since, stalled) >= patience, controller != nil
    else { return }
    totals.residue = max(totals.residue, plant.mechanism.pressure)
    guard plant.mechanism.pressure > limit else { return }
    violate("presses", "\(plant.id) presses with \(plant.mechanism.pressure) N, \(now - since) ms after it was told")
  }

  /// Whether end switches tell where the step is, and the controller was told what they say.
  func isSeen(_ index: Int) -> Bool {
    guard setting.hasEnds(plants[index].id) else { return false }
    return inputs.allSatisfy { sensor, wire in
      guard sensor == .endOpen(plants[index].id) || sensor == .endClosed(plants[index].id) else { return true }
      return wire.flaw == .healthy && told[sensor]?.isActive == wire.contact
    }
  }

  // MARK: - What is told

  func hear(_ publication: Controller.Publication) {
    let index = index(publication.step)
    let statement = SignedState(publication.payload)
    lastEpoch = statement.epoch
    let wasMoving = plants[index].phase == .moving
    plants[index].phase = statement.phase
    plants[index].position = statement.position
    if let digest = statement.command { answer(digest, statement, of: index) }
    guard statement.phase.isAtRest else { return }
    if wasMoving {
      plants[index].rested = now
      if statement.phase == .idle { totals.ends += 1 } else { totals.faults[statement.fault ?? "", default: 0] += 1 }
    }
    if let motion = plants[index].motion, statement.command == nil {
      if motion.turned != nil { totals.reversals += 1 }
      plants[index].motion = nil
    }
    checkPosition(of: index)
    guard wasMoving else { return }
    let (life, number) = (life, totals.motions)
    at(now + 150) { [unowned self] in
      if self.life == life, totals.motions == number, plants[index].phase.isAtRest, stalled < now - 200 {
        checkPosition(of: index)
      }
    }
  }

  func checkPosition(of index: Int) {
    let plant = plants[index]
    let isThere: Bool
    switch plant.position {
    case .open: isThere = plant.mechanism.place > 0.97
    case .close: isThere = plant.mechanism.place < 0.03
    case .unknown: return
    }
    guard isSeen(index) || (!plant.isDisturbed && !setting.hasEnds(plant.id)) else { return }
    if !isThere {
      violate(
        "untrue", "\(plant.id) is said to be at rest and \(plant.position), and stands at \(plant.mechanism.place)")
    }
  }

  func answer(_ digest: [UInt8], _ statement: SignedState, of index: Int) {
    if let challenge = statement.challenge {
      guard let plan = plans.removeValue(forKey: digest) else { return }
      let (life, given) = (life, handled)
      let move = Command.Move(
        target: plan.target, epoch: statement.epoch, challenge: challenge, deadline: statement.clock + plan.deadline,
        proof: .standing(at: plan.step), proofTime: max(0, statement.clock - 100))
      let payload = crew.riders[plan.rider].command(plan.step, .move(move))
      moves[payload] = (plan, move.deadline, life, given)
      underway += 1
      at(now + plan.transit) { [unowned self] in
        underway -= 1
        send(payload, to: plan.step)
      }
    } else if let refusal = statement.refusal {
      totals.refusals[refusal, default: 0] += 1
      deliveries.removeAll { $0.digest == digest }
      guard let motion = plants[index].motion, motion.command == digest, refusal != "replayed"
      else { return }
      if statement.phase == .moving {
        // It goes on to where it went.
        plants[index].motion?.target = motion.target == .open ? .close : .open
        plants[index].motion?.turned = nil
      } else {
        plants[index].motion = nil
      }
    } else if statement.phase.isAtRest {
      deliveries.removeAll { $0.digest == digest }
    }
  }

}
