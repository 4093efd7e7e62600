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
/// proof to the step. On a terminal a key stops the steps at any time.
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
    /// How many times faster than its own time a recording is played; nil for as fast as it can be read.
    let speed: Double?
    /// How long the radio listens, seconds; nil for no limit.
    let limit: Double?
    /// The radio that calls the vehicle, if it is another one.
    var calling: RadioSpec?
    /// How long to keep asking while something approaches the step.
    var wait = Duration.zero
    /// How to get to the vehicle.
    var via = Via.network

    /// Whether the radio is a recording that is read at once.
    fileprivate var isReplay: Bool { radio?.isReplay == true && speed == nil }
  }

  private let way: Way
  private let context: Context
  private let console: Console
  private let guide: Guide
  private let view: LiveView?
  /// The keys of a terminal without the picture.
  private var keyboard: Keyboard?
  private var keys: Registration?
  private var approach: ApproachRunner?
  /// How the steps stand, for the picture; nil without one, and where nobody can ask the vehicle.
  private var watch: StepWatch?
  /// Where this device's last command sends its step, while that is under way.
  private var sent: (step: StepID, target: Command.Move.Target)?
  /// Whether the rider has stopped a command.
  private var hasStopped = false
  /// Counts the pictures of a motion.
  private var moment = 0
  private var nextMoment: Registration?
  /// The links between the proof and the command. They are prepared when the vehicle is asked, because the command must
  /// not wait for them later.
  private var links: [(label: String, text: String)] = []
  private weak var client: RiderClient?
  /// How the vehicle's last answer came.
  private(set) var path = RiderClient.Path.network
  /// How and at which step the rider was found. Before that, the only method that searches, if there is only one.
  private var found: (step: StepID?, method: ProofMethod?)
  /// What the picture says instead of the advice, and until when, on the radio's clock.
  private var news: (text: String, end: Double)?
  private var last: LocationReport?

  /// - Parameter view: draws the picture; nil for lines.
  init(_ way: Way, _ context: Context, _ console: Console, _ view: LiveView?) {
    (self.way, self.context, self.console, self.view) = (way, context, console, view)
    let isAwaited = way.radio != nil && !way.isReplay
    guide = Guide(way.vehicle, limit: isAwaited ? way.limit : nil, console, hasLines: true)
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
      way.vehicle, side: way.side, isReplay: way.isReplay, asksFirst: asksFirst,
      goesOn: goesOn, calling: way.calling ?? way.radio, wait: way.wait)
    // A trace would be written over the picture, and so would details.
    let trace = view == nil ? console.trace : nil
    let detail = { [view, console] (line: String) in if view == nil { console.detail(line) } }
    // A stop may be for a step that the rider does not want to move.
    let steps = way.vehicle.steps.map(\.id)
    func client(_ access: RiderAccess, on loop: EventLoop) throws -> RiderClient {
      try RiderClient(
        access, steps: steps, patience: patience, loop: loop, via: way.via, preparation: preparation, detail: detail,
        trace: trace)
    }
    let approach = try ApproachRunner(goal, searches) { [unowned self] loop in
      let access = try access ?? rider()
      let client = try watch?.lend() ?? client(access, on: loop)
      try watch?.ask(client, about: steps.filter { !goal.steps.contains($0) })
      self.client = client
      links = [("broker", "\(access.broker), TLS")]
      let token = token ?? TokenReport(access.token, at: context.seconds)
      if !asksFirst { links.insert(("token", token.line), at: 0) }
      return client
    }
    self.approach = approach
    defer { approach.close() }
    // The picture knows the steps if the rider may ask the vehicle.
    if view != nil, let access = try? access ?? rider() {
      watch = StepWatch(steps, on: approach.loop) {
        try client(access, on: approach.loop)
      } tell: { [unowned self] in
        try draw()
      }
      if target == nil { watch?.start() }
    }
    defer { watch?.close() }
    keys = try takeKeys(on: approach.loop)
    defer {
      keys?.cancel()
      keyboard = nil
      nextMoment?.cancel()
      guide.clear()
      view?.close()
    }
    let ending = try approach.run(target, until: interruption) { [unowned self] event in try show(event) }
    if !goesOn, case .moved = ending { try linger(interruption) }
    return ending
  }

  /// Takes the terminal's keys, in the picture and without it: stopping must not need another command.
  private func takeKeys(on loop: EventLoop) throws -> Registration? {
    if let view {
      return try view.takeKeys().map { descriptor in
        try loop.watch(descriptor) { [unowned self] in for key in view.keys { try press(key) } }
      }
    }
    keyboard = Keyboard(context.streams.input)
    guard let descriptor = keyboard?.number else { return nil }
    // What was typed before was not meant for this command.
    context.streams.input.discardTyped()
    return try loop.watch(descriptor) { [unowned self] in
      guard let pressed = keyboard?.pressed() else { return keys?.cancel() ?? () }
      for key in pressed where Self.stopKeys.contains(key) { try press(key) }
    }
  }

  /// The picture stays for a moment, so that the rider sees the step where it is.
  private func linger(_ interruption: Interruption) throws {
    guard view != nil, last != nil else { return }
    try draw()
    _ = try waitReadable([interruption.number], until: .now + .seconds(1))
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
    let mayHaveMoved = (failure as? RiderError)?.mayHaveMoved == true || hasStopped
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
    if let client { path = client.path }
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
      if view == nil {
        guide.show(shortfall, of: sighting)
      } else if shortfall != .otherSide {
        // The advice says where to go.
        say(shortfall.sentence(of: sighting))
      }
    case .sighted(let sighting, let target, let isAgain): start(sighting, target, isAgain: isAgain)
    case .commanded(let step, let target):
      sent = (step, target)
      tell("command", "\(target.rawValue) \(step), encrypted, good for \(StepRequest.deadline / 1000) s")
    case .waits(let step, let refusal, let isNew): try show(refusal, at: step, isNew: isNew)
    case .moving(let step):
      console.progress.clear()
      tell("answer", "moving")
      if view == nil, keyboard != nil { console.progress.show("press s or the space bar to stop the step") }
      say("the \(step) step is moving", for: .infinity)
    case .stops:
      hasStopped = sent != nil
      console.progress.clear()
      tell("command", "stop, encrypted")
      say("stopping", for: .infinity)
    case .stopped(let statements):
      ends()
      for statement in statements { tell("answer", "\(statement.step): \(statement.position.state)") }
      let rests = statements.map { "\($0.step) \(StepState($0).word)" }.joined(separator: ", ")
      say("stopped: \(rests)", for: 5)
    case .done(let statement):
      ends()
      console.progress.clear()
      tell("answer", statement.position.state)
      say("the \(statement.step) step is \(statement.position.state)", for: 5)
    case .failed(let error):
      ends()
      console.progress.clear()
      tell("answer", error.description)
      say(error.description, for: 5)
    case .notConnected(let failure):
      ends()
      say(failure.description, for: 5)
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
      console.progress.show(console.labelled("traffic", text))
    }
    say(text, for: .infinity)
  }

  private func start(_ sighting: Sighting, _ target: Command.Move.Target, isAgain: Bool) {
    found = (sighting.step.id, sighting.method)
    guide.clear()
    // The chain has already been shown.
    if isAgain { return }
    tell("proof", sighting.summary)
    for link in links {
      let isReplaced = link.label == "broker" && path == .bluetooth
      isReplaced ? tell("link", "Bluetooth, straight to the vehicle") : tell(link.label, link.text)
    }
    say("\(target.rawValue) \(sighting.step.id)", for: .infinity)
  }

  /// Shows a link of the chain. With a picture, it appears below the picture when that has gone.
  private func tell(_ label: String, _ text: String) {
    if let view { view.note(console.labelled(label, text)) } else { console.note(label, text) }
  }

  // MARK: - The picture

  private func say(_ text: String, for seconds: Double = 0.1) { news = (text, (last?.location.time ?? 0) + seconds) }

  /// After a command or a stop, the connection is closed. A picture that goes on connects again to see the steps.
  private func ends() {
    sent = nil
    guard let watch, let approach else { return }
    approach.loop.schedule(at: .now) { watch.start() }
  }

  /// As large as a key can be, and the letter that the picture names.
  private static let stopKeys: Set<Character> = ["s", "S", " "]

  private func press(_ key: Character) throws {
    switch key {
    case "o", "O": try approach?.want(.open)
    case "c", "C": try approach?.want(.close)
    case "q", "Q": try approach?.quit()
    case _ where Self.stopKeys.contains(key): try approach?.stop()
    default: return
    }
    try draw()
  }

  private func draw() throws {
    guard let view, let last else { return }
    var wish: String?
    if let target = approach?.pending {
      let left =
        way.limit.map { limit in
          let left = BeaconSearch.end(of: limit, last.location) - last.location.time
          return ", \(max(0, Int(left.rounded(.up)))) s left"
        } ?? ""
      wish = "\(target.rawValue)s when you are there\(left)"
    }
    let keys = view.hasKeys ? ApproachFrame.Keys(wish: wish) : nil
    let steps = drawnSteps
    try view.show(last: [last.line]) { size in
      ApproachFrame(
        last, to: way.side, steps: steps, news: news?.text, keys: keys, size: size, glyphs: view.glyphs,
        style: console.styled
      ).lines
    }
    if steps?.areSliding == true, nextMoment == nil { animate() }
  }

  private var drawnSteps: DrawnSteps? {
    guard let watch else { return nil }
    let states = way.vehicle.steps.map { step in
      (step.id, StepState(watch.statements[step.id], wish: sent.flatMap { $0.step == step.id ? $0.target : nil }))
    }
    return DrawnSteps(states: Dictionary(uniqueKeysWithValues: states), moment: moment)
  }

  /// A motion is seen moving, also between two decisions of the radio.
  private func animate() {
    guard let approach else { return }
    nextMoment = approach.loop.schedule(at: .now + .milliseconds(150)) { [unowned self] in
      (moment, nextMoment) = (moment + 1, nil)
      try draw()
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
