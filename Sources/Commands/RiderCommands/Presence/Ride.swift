import CommandParts
import Domain
import MQTT
import Ranging
import Rider
import StepProtocol
import SystemIO
import Terminal

/// A rider's way to a step, and the command there. On a terminal a key stops the steps at any time.
///
/// It gives `ApproachRunner` the searches, the client and the keys, and `RideView` everything that happens.
final class Ride {
  private let way: RideView.Way
  private let context: Context
  private let console: Console
  /// Where the steps are shown as a picture; nil for lines.
  private let picture: LiveView?
  private let view: RideView
  /// The keys of a terminal without the picture.
  private var keyboard: Keyboard?
  private var keys: Registration?
  private var approach: ApproachRunner?
  /// How the steps stand, for the picture; nil without one, and where nobody can ask the vehicle.
  private var watch: StepWatch?
  private var nextMoment: Registration?
  private weak var client: RiderClient?

  /// - Parameter picture: draws the steps; nil for lines.
  init(_ way: RideView.Way, _ context: Context, _ console: Console, _ picture: LiveView?) {
    (self.way, self.context, self.console, self.picture) = (way, context, console, picture)
    view = RideView(way, console, picture)
  }

  /// How the vehicle's last answer came.
  var path: RiderClient.Path { view.path }

  /// The failure that ended the ride, with details for programs.
  ///
  /// - Parameter duration: seconds since the command began.
  func told(_ failure: any Failure, after duration: Double) -> any Failure { view.told(failure, after: duration) }

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
    if searches.count == 1 { view.searches(searches[0].method) }
    // Faulty files are reported before anything is asked or heard.
    let access = try target.map { _ in try rider() }
    let token = access.map { TokenReport($0.token, at: context.seconds) }
    // This device's clock may be wrong and the vehicle's decides, so the vehicle is asked first.
    let asksFirst = token?.isValid == false
    if let token, asksFirst { view.tell("token", token.line) }
    let goal = Approach.Goal(
      way.vehicle, side: way.side, isReplay: way.isReplay, asksFirst: asksFirst,
      goesOn: goesOn, calling: way.calling ?? way.radio, wait: way.wait)
    // A trace would be written over the picture, and so would details.
    let trace = picture == nil ? console.trace : nil
    let detail = { [picture, console] (line: String) in if picture == nil { console.detail(line) } }
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
      view.asks(access, token: asksFirst ? nil : token ?? TokenReport(access.token, at: context.seconds))
      return client
    }
    self.approach = approach
    defer { approach.close() }
    // The picture knows the steps if the rider may ask the vehicle.
    if picture != nil, let access = try? access ?? rider() {
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
      view.close()
    }
    let ending = try approach.run(target, until: interruption) { [unowned self] event in try happened(event) }
    if !goesOn, case .moved = ending { try linger(interruption) }
    return ending
  }

  private func happened(_ event: Approach.Event) throws {
    if let client { view.path = client.path }
    try view.show(event, stopsByKey: picture == nil && keyboard != nil)
    // After a command or a stop, the connection is closed. A picture that goes on connects again to see the steps.
    if event.endsCommand, let watch, let approach { approach.loop.schedule(at: .now) { watch.start() } }
    try draw()
  }

  /// The picture stays for a moment, so that the rider sees the step where it is.
  private func linger(_ interruption: Interruption) throws {
    guard view.isDrawn else { return }
    try draw()
    _ = try waitReadable([interruption.number], until: .now + .seconds(1))
  }

  private func draw() throws {
    let isSliding = try view.draw(pending: approach?.pending, steps: watch?.statements)
    guard isSliding, nextMoment == nil, let approach else { return }
    // A motion is seen moving, also between two decisions of the radio.
    nextMoment = approach.loop.schedule(at: .now + .milliseconds(150)) { [unowned self] in
      nextMoment = nil
      view.moment += 1
      try draw()
    }
  }

  // MARK: - Keys

  /// Takes the terminal's keys, in the picture and without it: stopping must not need another command.
  private func takeKeys(on loop: EventLoop) throws -> Registration? {
    if let picture {
      return try picture.takeKeys().map { descriptor in
        try loop.watch(descriptor) { [unowned self] in for key in picture.keys { try press(key) } }
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
}

extension Approach.Event {
  /// Whether a command or a stop is over, with the connection that it had.
  fileprivate var endsCommand: Bool {
    switch self {
    case .done, .stopped, .failed, .notConnected: true
    case .search, .accepts, .asks, .lacks, .sighted, .commanded, .waits, .moving, .stops, .calling, .cannotCall: false
    }
  }
}
