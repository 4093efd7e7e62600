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
  /// The way to a step, as far as the rider has said and set it.
  struct Way {
    let vehicle: Vehicle
    /// The value that `--vehicle` needs for another command to mean this vehicle; nil if it needs none.
    let name: String?
    /// The side that the rider asked for.
    var side: Side?
    /// The radio that listens; nil for none.
    let radio: RadioSpec?
    /// How long the radio listens, seconds; nil for no limit.
    let limit: Double?
    /// The radio that calls the vehicle, if it is another one.
    var calling: RadioSpec?
    /// How long to keep asking while something approaches the step.
    var wait = Duration.zero
  }

  private let way: Way
  private let context: Context
  private let console: Console
  private let guide: Guide
  private let view: LiveView?
  private var approach: ApproachRunner?
  /// The links between the proof and the command. They are prepared when the vehicle is asked, because the command must
  /// not wait for them later.
  private var links: [(label: String, text: String)] = []
  /// How and at which step the rider was found. Before that, the only method that searches, if there is only one.
  private var found: (step: StepID?, method: ProofMethod?)
  /// What the picture says instead of the advice, and until when, on the radio's clock.
  private var news: (text: String, end: Double)?
  private var last: LocationReport?

  /// - Parameter view: draws the picture; nil for lines.
  init(_ way: Way, _ context: Context, _ console: Console, _ view: LiveView?) {
    (self.way, self.context, self.console, self.view) = (way, context, console, view)
    guide = Guide(way.vehicle, way.radio, limit: way.limit, console, hasLines: true)
  }

  /// Searches for the step, and sends the command that the rider wants.
  ///
  /// - Parameters:
  ///   - goesOn: whether to continue after a command, until the rider quits or the radio ends.
  ///   - preparation: prepares TLS for the vehicle's broker.
  ///   - rider: reads the rider's identity, before the vehicle is asked.
  func run(
    _ target: Command.Move.Target?, _ searches: [any StepSearch], until interruption: Interruption, patience: Duration,
    goesOn: Bool = false, preparation: TLSPreparation? = nil, as rider: @escaping () throws -> RiderAccess
  ) throws -> Approach.Ending {
    found.method = searches.count == 1 ? searches[0].method : nil
    // Faulty files are reported before anything is asked or heard.
    let access = try target.map { _ in try rider() }
    let token = access.map { TokenReport($0.token, at: context.seconds) }
    // This device's clock may be wrong and the vehicle's decides, so the vehicle is asked first.
    let asksFirst = token?.isValid == false
    if let token, asksFirst { tell("token", token.line) }
    let goal = Approach.Goal(
      way.vehicle, side: way.side, isReplay: way.radio?.isReplay == true, asksFirst: asksFirst, goesOn: goesOn,
      calling: way.calling ?? way.radio, wait: way.wait)
    // A trace would be written over the picture.
    let trace = view == nil ? console.trace : nil
    let approach = try ApproachRunner(goal, searches) { [unowned self] loop in
      let access = try access ?? rider()
      let client = try RiderClient(
        access, steps: goal.steps, patience: patience, loop: loop, preparation: preparation, detail: console.detail,
        trace: trace)
      links = [("broker", "\(access.broker), TLS")]
      let token = token ?? TokenReport(access.token, at: context.seconds)
      if !asksFirst { links.insert(("token", token.line), at: 0) }
      return client
    }
    self.approach = approach
    defer { approach.close() }
    let keyboard = try view?.takeKeys().map { descriptor in
      try approach.loop.watch(descriptor) { [unowned self] in for key in view?.keys ?? [] { try press(key) } }
    }
    defer {
      keyboard?.cancel()
      guide.clear()
      view?.close()
    }
    return try approach.run(target, until: interruption) { [unowned self] event in try show(event) }
  }

  /// The failure that ended the ride, with details for programs: the step, the method that found the rider, the
  /// duration, and whether the step may have moved.
  ///
  /// - Parameter duration: seconds since the command began.
  func told(_ failure: any Failure, after duration: Double) -> any Failure {
    guard !failure.isInterruption else { return failure }
    var details = failure.details
    if let step = found.step, !details.contains(where: { $0.name == "step" }) {
      details.insert(.init("step", .string(step.description)), at: 0)
    }
    let mayHaveMoved = (failure as? RiderError)?.mayHaveMoved ?? false
    details.append(.init("may_have_moved", .bool(mayHaveMoved)))
    if !details.contains(where: { $0.name == "method" }) {
      details.append(.init("method", found.method.map { .string($0.rawValue) } ?? .null))
    }
    details.append(.init("duration_s", .rounded(duration, places: 3)))
    let hint = (failure as? RiderError).map { $0.hint(naming: way.name) } ?? failure.hint
    return CommandFailure(failure.exitStatus, failure.description, hint: hint, details: details)
  }

  // MARK: - What happens

  private func show(_ event: Approach.Event) throws {
    switch event {
    case .search(let method, .ended(let result)):
      if let view { view.note(guide.sentence(on: method, result)) } else { guide.show(method, .ended(result)) }
    case .search(_, .note(let note)) where view != nil: view?.note(note)
    case .search(let method, let event):
      if view == nil { guide.show(method, event, side: way.side) }
      if case .decided(let location, _) = event {
        last = LocationReport(vehicle: way.vehicle, location: location)
        if let news, news.end <= location.time { self.news = nil }
      }
    case .asks(let sighting): view == nil ? guide.show(asking: sighting) : say(guide.sentence(asking: sighting))
    case .lacks(let sighting, let shortfall):
      view == nil ? guide.show(shortfall, of: sighting) : say(shortfall.sentence(of: sighting))
    case .sighted(let sighting, let target, let isAgain): start(sighting, target, isAgain: isAgain)
    case .commanded(let step, let target):
      tell("command", "\(target.rawValue) \(step), encrypted, good for \(StepRequest.deadline / 1000) s")
    case .waits(let step, let refusal, let isNew): try show(refusal, at: step, isNew: isNew)
    case .moving(let step):
      console.progress.clear()
      tell("answer", "moving")
      say("the \(step) step is moving", for: .infinity)
    case .done(let statement):
      tell("answer", statement.position.state)
      say("the \(statement.step) step is \(statement.position.state)", for: 5)
    case .failed(let error):
      tell("answer", error.description)
      say(error.description, for: 5)
    case .notConnected(let failure): say(failure.description, for: 5)
    case .accepts(let policy): console.detail("the vehicle accepts \(policy.summary)")
    case .calling(let radio): tell("call", "calling the vehicle with \(radio), because it listens for you")
    case .cannotCall(let error): tell("call", "the vehicle cannot hear you: \(error)")
    }
    try draw()
  }

  /// Shows why the vehicle waits: in a new line if the reason has changed, otherwise in the line that changes.
  private func show(_ refusal: Refusal, at step: StepID, isNew: Bool) throws {
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
    if isNew {
      console.progress.clear()
      tell("traffic", text)
    } else if view == nil {
      console.progress.show(console.link("traffic", text))
    }
    say(text, for: .infinity)
  }

  private func start(_ sighting: Sighting, _ target: Command.Move.Target, isAgain: Bool) {
    found = (sighting.step.id, sighting.method)
    guide.clear()
    // The chain has already been shown.
    if isAgain { return }
    tell("proof", sighting.summary)
    for link in links { tell(link.label, link.text) }
    say("\(target.rawValue) \(sighting.step.id)", for: .infinity)
  }

  /// Shows a link of the chain. With a picture, it appears below the picture when that has gone.
  private func tell(_ label: String, _ text: String) {
    if let view { view.note(console.link(label, text)) } else { console.note(label, text) }
  }

  // MARK: - The picture

  private func say(_ text: String, for seconds: Double = 0.1) { news = (text, (last?.location.time ?? 0) + seconds) }

  private func press(_ key: Character) throws {
    switch key {
    case "o", "O": try approach?.want(.open)
    case "c", "C": try approach?.want(.close)
    case "q", "Q": try approach?.quit()
    default: return
    }
    try draw()
  }

  private func draw() throws {
    guard let view, let last else { return }
    var wish = ""
    if let target = approach?.pending {
      let left =
        way.limit.map { limit in
          let left = BeaconSearch.end(of: limit, last.location) - last.location.time
          return ", \(max(0, Int(left.rounded(.up)))) s left"
        } ?? ""
      wish = "\(target.rawValue)s when you are there\(left)   "
    }
    let keys = view.hasKeys ? "\(wish)o open   c close   q quit" : nil
    try view.show(last: [last.line]) { size in
      ApproachFrame(
        last, news: news?.text, keys: keys, size: size, glyphs: view.glyphs, style: console.styled
      ).lines
    }
  }
}

extension PresencePolicy {
  /// `beacon, nfc within near, copies count`
  fileprivate var summary: String {
    let words = ProofMethod.allCases.filter(methods.contains).map(\.rawValue).joined(separator: ", ")
    return "\(words) within \(zone.rawValue), copies \(acceptsStatic ? "count" : "do not count")"
  }
}
