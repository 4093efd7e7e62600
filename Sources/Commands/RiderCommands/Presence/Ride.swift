import Bluetooth
import CommandParts
import Domain
import Encoding
import MQTT
import Ranging
import Rider
import StepProtocol
import SystemIO
import Terminal

/// Shows a rider's way to a step, in a line that changes, in lines, or in a picture with keys; then the chain from the
/// proof to the step.
final class Ride {
  private let vehicle: Vehicle
  private let radio: RadioSpec?
  private let console: Console
  private let guide: Guide
  private let view: LiveView?
  private let interruption: Interruption
  /// The value that `--vehicle` needs for another command to mean this vehicle; nil if it needs none.
  private let name: String?
  /// The radio that calls a vehicle which listens for this device.
  private let calling: RadioSpec?
  private let now: Int64
  /// The side that the rider asked for.
  private let side: Side?
  private let limit: Double?
  /// How long to keep asking while something approaches the step.
  private let wait: Duration
  private var approach: Approach?
  /// The last reason for which the vehicle waited.
  private var awaited: Refusal?

  /// The links between the proof and the command. They are prepared when the vehicle is asked, because the command must
  /// not wait for them later.
  private var links: [(label: String, text: String)] = []
  private var target: Command.Move.Target?
  private var step: StepID?
  /// The method that found the rider. Before that, the only method that searches, if there is only one.
  private var method: ProofMethod?
  /// What the picture says instead of the advice, and until when, on the radio's clock.
  private var news: (text: String, end: Double)?
  private var last: LocationReport?
  private var hasKeys = false

  /// - Parameters:
  ///   - radio: the radio that listens; nil for none.
  ///   - limit: how long the radio listens, seconds; nil for no limit.
  ///   - calling: the radio that calls the vehicle, if it is another one.
  ///   - view: draws the picture; nil for lines.
  init(
    _ vehicle: Vehicle, named name: String?, side: Side?, radio: RadioSpec?, limit: Double?, _ context: Context,
    _ console: Console, _ view: LiveView?, _ interruption: Interruption, calling: RadioSpec? = nil,
    wait: Duration = .zero
  ) {
    self.vehicle = vehicle
    self.name = name
    self.side = side
    self.radio = radio
    self.console = console
    self.view = view
    self.interruption = interruption
    self.calling = calling ?? radio
    now = context.seconds
    self.limit = limit
    self.wait = wait
    guide = Guide(vehicle, radio, limit: limit, console, hasLines: true)
  }

  /// Searches for the step, and sends the command that the rider wants.
  ///
  /// - Parameters:
  ///   - goesOn: whether to continue after a command, until the rider quits or the radio ends.
  ///   - preparation: prepares TLS for the vehicle's broker.
  ///   - rider: reads the rider's identity, before the vehicle is asked.
  func run(
    _ target: Command.Move.Target?, _ searches: [any StepSearch], patience: Duration, goesOn: Bool = false,
    preparation: TLSPreparation? = nil, as rider: @escaping () throws -> RiderAccess
  ) throws -> Approach.Ending {
    let loop = try EventLoop()
    method = searches.count == 1 ? searches[0].method : nil
    let steps = vehicle.steps.filter { side == nil || $0.side == side }.map(\.id)
    let search = try PresenceSearch(searches)
    defer { search.close() }
    // Faulty files are reported before anything is asked or heard.
    let access = try target.map { _ in try rider() }
    var isValid = true
    if let access {
      let token = TokenReport(access.token, at: now)
      isValid = token.isValid
      // This device's clock may be wrong and the vehicle's decides, so the vehicle is asked first.
      if !isValid { tell("token", token.line) }
    }
    let goal = Approach.Goal(
      steps: steps, side: side, isReplay: radio?.isReplay == true, asksFirst: !isValid, goesOn: goesOn,
      calling: calling, wait: wait)
    // A trace would be written over the picture.
    let trace = view == nil ? console.trace : nil
    let approach = Approach(goal, search, on: loop, interruption) { [unowned self] in
      let access = try access ?? rider()
      let client = try RiderClient(
        access, steps: steps, patience: patience, loop: loop, preparation: preparation, detail: console.detail,
        trace: trace)
      links = [("broker", "\(access.broker), TLS")]
      if isValid { links.insert(("token", TokenReport(access.token, at: now).line), at: 0) }
      return client
    }
    self.approach = approach
    self.target = target
    let keyboard = try view?.takeKeys().map { descriptor in
      hasKeys = true
      return try loop.watch(descriptor) { [unowned self] in for key in view?.keys ?? [] { try press(key) } }
    }
    defer {
      keyboard?.cancel()
      guide.clear()
      view?.close()
    }
    return try approach.run(target) { [unowned self] event in
      try show(event, isLast: !search.isRunning)
    }
  }

  /// The failure that ended the ride, with details for programs: the step, the method that found the rider, the
  /// duration, and whether the step may have moved.
  ///
  /// - Parameter duration: seconds since the command began.
  func told(_ failure: any Failure, after duration: Double) -> any Failure {
    guard !failure.isInterruption else { return failure }
    var details = failure.details
    if let step, !details.contains(where: { $0.name == "step" }) {
      details.insert(.init("step", .string(step.description)), at: 0)
    }
    let mayHaveMoved = (failure as? RiderError)?.mayHaveMoved ?? false
    details.append(.init("may_have_moved", .bool(mayHaveMoved)))
    if !details.contains(where: { $0.name == "method" }) {
      details.append(.init("method", method.map { .string($0.rawValue) } ?? .null))
    }
    details.append(.init("duration_s", .rounded(duration, places: 3)))
    let hint = (failure as? RiderError).map { $0.hint(naming: name) } ?? failure.hint
    return CommandFailure(failure.exitStatus, failure.description, hint: hint, details: details)
  }

  // MARK: - What happens

  private func show(_ event: Approach.Event, isLast: Bool) throws {
    switch event {
    case .search(let method, .ended(let result)):
      // The command's own result reports the last search, and the next line reports a sighting.
      guard !isLast, !result.isSighting else { break }
      if let view { view.note(guide.sentence(on: method, result)) } else { guide.show(method, .ended(result)) }
    case .search(_, .note(let note)) where view != nil: view?.note(note)
    case .search(let method, let event):
      if view == nil { guide.show(method, event, side: side) }
      if case .decided(let location, _) = event {
        last = LocationReport(vehicle: vehicle, location: location)
        if let news, news.end <= location.time { self.news = nil }
      }
    case .asks(let sighting): view == nil ? guide.show(asking: sighting) : say(guide.sentence(asking: sighting))
    case .lacks(let sighting, let shortfall):
      view == nil ? guide.show(shortfall, of: sighting) : say(shortfall.sentence(of: sighting))
    case .sighted(let sighting): start(sighting)
    case .request(.commanded) where awaited != nil: break
    case .request(.commanded):
      let words = "\(target?.rawValue ?? "") \(step?.description ?? ""), encrypted"
      tell("command", "\(words), good for \(StepRequest.deadline / 1000) s")
    case .waits(let step, let refusal): try show(refusal, at: step)
    case .request(.moving):
      console.progress.clear()
      tell("answer", "moving")
      say("the \(step?.description ?? "") step is moving", for: .infinity)
    case .request(.done(let statement)):
      tell("answer", statement.position.state)
      say("the \(statement.step) step is \(statement.position.state)", for: 5)
      (target, awaited) = (nil, nil)
    case .request(.failed(let error)):
      tell("answer", error.description)
      say(error.description, for: 5)
      (target, awaited) = (nil, nil)
    case .request(.answered(_, let policy)): console.detail("the vehicle accepts \(policy.summary)")
    case .calls(let text): tell("call", text)
    case .request(.send), .request(.call), .request(.heard): break
    }
    try draw()
  }

  /// Shows why the vehicle waits: in a new line if the reason has changed, otherwise in the line that changes.
  private func show(_ refusal: Refusal, at step: StepID) throws {
    let text: String
    if let oncoming = refusal.oncoming {
      text = "\(oncoming.phrase) in \(tenths(Double(oncoming.arrival) / 1000)) s; waiting"
    } else {
      text = "\(refusal.code == .blind ? "the road is not seen yet" : "something comes towards the step"); waiting"
    }
    if console.isJSON {
      try console.result(
        .object(
          [.init("waiting", .string(refusal.code.rawValue)), .init("step", .string(step.description))]
            + (refusal.oncoming?.details ?? [])))
    }
    let isNew = awaited?.code != refusal.code || awaited?.oncoming?.category != refusal.oncoming?.category
    awaited = refusal
    if isNew {
      console.progress.clear()
      tell("traffic", text)
    } else if view == nil {
      console.progress.show(console.link("traffic", text))
    }
    say(text, for: .infinity)
  }

  private func start(_ sighting: Sighting) {
    step = sighting.step.id
    method = sighting.method
    guide.clear()
    // The chain has already been shown.
    if awaited != nil { return }
    tell("proof", sighting.summary)
    for link in links { tell(link.label, link.text) }
    say("\(target?.rawValue ?? "") \(sighting.step.id)", for: .infinity)
  }

  /// Shows a link of the chain. With a picture, it appears below the picture when that has gone.
  private func tell(_ label: String, _ text: String) {
    if let view { view.note(console.link(label, text)) } else { console.note(label, text) }
  }

  // MARK: - The picture

  private func say(_ text: String, for seconds: Double = 0.1) { news = (text, (last?.location.time ?? 0) + seconds) }

  private func press(_ key: Character) throws {
    switch key {
    case "o", "O": try want(.open)
    case "c", "C": try want(.close)
    case "q", "Q": try approach?.quit()
    default: break
    }
  }

  private func want(_ target: Command.Move.Target) throws {
    let before = self.target
    if approach?.isCommanding != true { self.target = target }
    do {
      try approach?.want(target)
    } catch let failure as any Failure where !failure.isInterruption {
      self.target = before
      say(failure.description, for: 5)
    }
    try draw()
  }

  private func draw() throws {
    guard let view, let last else { return }
    var wish = ""
    if let target, approach?.isCommanding != true {
      let left =
        limit.map { limit in
          let left = BeaconSearch.end(of: limit, last.location) - last.location.time
          return ", \(max(0, Int(left.rounded(.up)))) s left"
        } ?? ""
      wish = "\(target.rawValue)s when you are there\(left)   "
    }
    let keys = hasKeys ? "\(wish)o open   c close   q quit" : nil
    try view.show(last: [last.line]) { size in
      ApproachFrame(
        last, news: news?.text, keys: keys, size: size, glyphs: view.glyphs, style: console.styled
      ).lines
    }
  }
}

extension Result<Finding, any Error> {
  fileprivate var isSighting: Bool { if case .success(.sighted) = self { true } else { false } }
}

extension PresencePolicy {
  /// `beacon, nfc within near, copies count`
  fileprivate var summary: String {
    let words = ProofMethod.allCases.filter(methods.contains).map(\.rawValue).joined(separator: ", ")
    return "\(words) within \(zone.rawValue), copies \(acceptsStatic ? "count" : "do not count")"
  }
}
