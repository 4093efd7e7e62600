import Bluetooth
import CommandParts
import Domain
import Encoding
import MQTT
import Ranging
import Rider
import StepProtocol
import Terminal

/// Shows a ride: in a line that changes, in lines, or in a picture; then the chain from the proof to the step.
final class RideView {
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
    var isReplay: Bool { radio?.isReplay == true && speed == nil }
  }

  private let way: Way
  private let console: Console
  private let guide: Guide
  private let picture: LiveView?
  /// Where this device's last command sends its step, while that is under way.
  private var sent: (step: StepID, target: Command.Move.Target)?
  /// Whether the rider has stopped a command.
  private var hasStopped = false
  /// Counts the pictures of a motion.
  var moment = 0
  /// The links between the proof and the command. They are prepared when the vehicle is asked, because the command must
  /// not wait for them later.
  private var links: [(label: String, text: String)] = []
  /// How the vehicle's last answer came.
  var path = RiderClient.Path.network
  /// How and at which step the rider was found. Before that, the only method that searches, if there is only one.
  private var found: (step: StepID?, method: ProofMethod?)
  /// What the picture says instead of the advice, and until when, on the radio's clock.
  private var news: (text: String, end: Double)?
  private var last: LocationReport?

  /// - Parameter picture: draws the steps; nil for lines.
  init(_ way: Way, _ console: Console, _ picture: LiveView?) {
    (self.way, self.console, self.picture) = (way, console, picture)
    let isAwaited = way.radio != nil && !way.isReplay
    guide = Guide(way.vehicle, limit: isAwaited ? way.limit : nil, console, hasLines: true)
  }

  func close() {
    guide.clear()
    picture?.close()
  }

  // MARK: - What happens

  /// Only this method searches.
  func searches(_ method: ProofMethod) { found.method = method }

  /// The vehicle is asked.
  ///
  /// - Parameter token: nil if it has been shown.
  func asks(_ access: RiderAccess, token: TokenReport?) {
    links = (token.map { [("token", $0.line)] } ?? []) + [("broker", "\(access.broker), TLS")]
  }

  /// - Parameter stopsByKey: whether a key stops a motion that is shown in lines.
  func show(_ event: Approach.Event, stopsByKey: Bool) throws {
    switch event {
    case .search(let method, .ended(let result)):
      if let picture { picture.note(guide.sentence(on: method, result)) } else { guide.show(method, .ended(result)) }
    case .search(_, .note(let note)) where picture != nil: picture?.note(note)
    case .search(let method, let event):
      if picture == nil { guide.show(method, event, side: way.side) }
      if case .decided(let location, _) = event {
        last = LocationReport(vehicle: way.vehicle, location: location)
        if let news, news.end <= location.time { self.news = nil }
      }
    case .asks(let sighting): picture == nil ? guide.show(asking: sighting) : say(guide.sentence(asking: sighting))
    case .lacks(let sighting, let shortfall):
      if picture == nil {
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
      if stopsByKey { console.progress.show("press s or the space bar to stop the step") }
      say("the \(step) step is moving", for: .infinity)
    case .stops:
      hasStopped = sent != nil
      console.progress.clear()
      tell("command", "stop, encrypted")
      say("stopping", for: .infinity)
    case .stopped(let statements):
      sent = nil
      for statement in statements { tell("answer", "\(statement.step): \(statement.position.state)") }
      let rests = statements.map { "\($0.step) \(StepState($0).word)" }.joined(separator: ", ")
      say("stopped: \(rests)", for: 5)
    case .done(let statement):
      sent = nil
      console.progress.clear()
      tell("answer", statement.position.state)
      say("the \(statement.step) step is \(statement.position.state)", for: 5)
    case .failed(let error):
      sent = nil
      console.progress.clear()
      tell("answer", error.description)
      say(error.description, for: 5)
    case .notConnected(let failure):
      sent = nil
      say(failure.description, for: 5)
    case .accepts(let policy): console.detail("the vehicle accepts \(policy.summary)")
    case .calling(let radio): tell("call", "calling the vehicle with \(radio), because it listens for you")
    case .cannotCall(let error): tell("call", "the vehicle cannot hear you: \(error)")
    }
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
    } else if picture == nil {
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
  func tell(_ label: String, _ text: String) {
    if let picture { picture.note(console.labelled(label, text)) } else { console.note(label, text) }
  }

  // MARK: - The picture

  /// Whether there is something that the rider has seen.
  var isDrawn: Bool { picture != nil && last != nil }

  private func say(_ text: String, for seconds: Double = 0.1) { news = (text, (last?.location.time ?? 0) + seconds) }

  /// - Parameters:
  ///   - pending: what the rider wants as soon as they are at the step.
  ///   - steps: how the steps stand; nil if nobody can ask the vehicle.
  /// - Returns: whether a step is drawn in motion.
  func draw(pending: Command.Move.Target?, steps: [StepID: Statement]?) throws -> Bool {
    guard let picture, let last else { return false }
    let wish = pending.map { target in
      let left =
        way.limit.map { limit in
          let left = BeaconSearch.end(of: limit, last.location) - last.location.time
          return ", \(max(0, Int(left.rounded(.up)))) s left"
        } ?? ""
      return "\(target.rawValue)s when you are there\(left)"
    }
    let keys = picture.hasKeys ? ApproachFrame.Keys(wish: wish) : nil
    let drawn = steps.map { drawing(of: $0) }
    try picture.show(last: [last.line]) { size in
      ApproachFrame(
        last, to: way.side, steps: drawn, news: news?.text, keys: keys, size: size, glyphs: picture.glyphs,
        style: console.styled
      ).lines
    }
    return drawn?.areSliding == true
  }

  private func drawing(of statements: [StepID: Statement]) -> DrawnSteps {
    let states = way.vehicle.steps.map { step in
      (step.id, StepState(statements[step.id], wish: sent.flatMap { $0.step == step.id ? $0.target : nil }))
    }
    return DrawnSteps(states: Dictionary(uniqueKeysWithValues: states), moment: moment)
  }

  // MARK: - A failure

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
}

extension PresencePolicy {
  /// `beacon, nfc within near, copies count`
  fileprivate var summary: String {
    let words = ProofMethod.allCases.filter(methods.contains).map(\.rawValue).joined(separator: ", ")
    return "\(words) within \(zone.rawValue), copies \(acceptsStatic ? "count" : "do not count")"
  }
}
