import Bluetooth
import Configuration
import Domain
import Encoding
import MQTT
import Ranging
import Rider
import StepProtocol
import SystemIO
import Terminal

/// A rider's way to a step as it is shown: in a line that changes, in lines, or in a picture with keys; and then the
/// chain from the proof to the step.
final class Ride {
  private let vehicle: Vehicle
  private let radio: RadioSpec?
  private let console: Console
  private let guide: Guide
  private let view: LiveView?
  private let interruption: Interruption
  /// What --vehicle has to be for another command to mean this vehicle; nil where it need not be given.
  private let name: String?
  /// What calls a vehicle that listens for this device.
  private let calling: RadioSpec?
  private let now: Int64
  /// The side that the rider asked for.
  private let side: Side?
  private let limit: Double?
  /// For how long to ask again while something comes towards the step.
  private let wait: Duration
  private var approach: Approach?
  /// What the vehicle waited for last.
  private var awaited: Refusal?

  /// The links between the proof and the command. They are made when the vehicle is asked, because later the command is
  /// in a hurry.
  private var links: [(label: String, text: String)] = []
  private var target: Command.Move.Target?
  private var step: StepID?
  /// The method that found the rider; before that the only method that searches, where there is only one.
  private var method: ProofMethod?
  /// What the picture says in place of the advice, and until when, on the radio's clock.
  private var news: (text: String, end: Double)?
  private var last: LocationReport?
  private var hasKeys = false

  /// - Parameters:
  ///   - radio: what is listened with; nil where nothing is.
  ///   - limit: how long the radio listens, seconds; nil for as long as the rider likes.
  ///   - calling: what to call the vehicle with, if not with the radio.
  ///   - view: where to draw; nil for lines.
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

  /// Searches, and commands what the rider wants.
  ///
  /// - Parameters:
  ///   - goesOn: whether to go on after a command, until the rider quits or the radio ends.
  ///   - preparation: of the TLS of the vehicle's broker.
  ///   - rider: reads who commands, before the vehicle is asked.
  func run(
    _ target: Command.Move.Target?, _ searches: [any StepSearch], patience: Duration, goesOn: Bool = false,
    preparation: TLSPreparation? = nil, as rider: @escaping () throws -> RiderAccess
  ) throws -> Approach.Ending {
    let loop = try EventLoop()
    method = searches.count == 1 ? searches[0].method : nil
    let steps = vehicle.steps.filter { side == nil || $0.side == side }.map(\.id)
    let search = try PresenceSearch(searches)
    defer { search.close() }
    // What is wrong with files is told before anything is asked or listened to.
    let access = try target.map { _ in try rider() }
    var isValid = true
    if let access {
      let token = TokenReport(access.token, at: now)
      isValid = token.isValid
      // By this device's clock, which may be wrong: the vehicle's decides. It is asked before anything else.
      if !isValid { tell("token", token.line) }
    }
    let goal = Approach.Goal(
      steps: steps, side: side, isReplay: radio?.isReplay == true, asksFirst: !isValid, goesOn: goesOn,
      calling: calling, wait: wait)
    // A trace would be written into the picture.
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

  /// The failure with which it ended, and what a program has to know of it: at which step, with what the rider was
  /// found, how long it took, and whether the step may have moved.
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

  /// Shows why the vehicle waits: in a new line when the reason is another one, and else in the line that changes.
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
    // The chain has been told already.
    if awaited != nil { return }
    tell("proof", sighting.summary)
    for link in links { tell(link.label, link.text) }
    say("\(target?.rawValue ?? "") \(sighting.step.id)", for: .infinity)
  }

  /// Shows a link of the chain; where there is a picture, below it when the picture has gone.
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
