package import Domain
package import Ranging
package import Bluetooth
package import StepProtocol
package import SystemIO

/// A rider on the way to a step that is to move: the searches run, the vehicle is asked meanwhile for a challenge and for
/// what it accepts, and the first sighting that it accepts becomes the command.
///
/// **Threads.** One thread makes it, runs it, and gets what it tells.
package final class Approach {
  /// What whoever shows the way wants to know.
  package enum Event {
    case search(ProofMethod, SearchEvent)
    /// Whether this does the vehicle has not told yet.
    case asks(Sighting)
    /// What was found does not do, and the searches go on.
    case lacks(Sighting, Shortfall)
    /// This does: it becomes the command.
    case sighted(Sighting)
    case request(StepRequest.Update)
  }

  /// How it ended, where no error ended it.
  package enum Ending {
    case moved(Sighting, Statement)
    /// The beacons did not say enough, and no other search is left.
    case undecided(Location, RadioSpec)
    /// What was found does not do, and no search is left.
    case lacking(Sighting, Shortfall)
  }

  private let target: Command.Move.Target
  private let steps: [StepID]
  private let search: PresenceSearch
  private let client: RiderClient
  private let loop: EventLoop
  private let isReplay: Bool
  /// Whether the vehicle's first answer is awaited before anything is searched for.
  private let asksFirst: Bool

  package private(set) var presence: Presence
  private var isSearching = false
  /// The step that is commanded.
  private var commanded: Sighting?
  /// Why the vehicle cannot be asked, or refuses to say more, of each step.
  private var failures: [StepID: RiderError] = [:]
  private var ending: Ending?

  /// - Parameters:
  ///   - target: what becomes of the step.
  ///   - steps: those that may be meant.
  ///   - side: where the rider says that the step is; nil for whichever the rider is at.
  ///   - isReplay: whether the radio plays a recording.
  ///   - asksFirst: for a rider whom the vehicle is likely to refuse: nothing is searched for before it has answered.
  ///   - client: connected to the vehicle for all of these steps.
  package init(
    _ target: Command.Move.Target, of steps: [StepID], at side: Side?, _ search: PresenceSearch, isReplay: Bool,
    asksFirst: Bool = false, _ client: RiderClient, on loop: EventLoop
  ) {
    self.target = target
    self.steps = steps
    self.search = search
    self.client = client
    self.loop = loop
    self.isReplay = isReplay
    self.asksFirst = asksFirst
    presence = Presence(side: side)
  }

  /// Runs the loop until the step has come to rest, or there is nothing more to wait for.
  ///
  /// - Throws: `RiderError`; where the searches all ended without a sighting, why the last one failed.
  package func run(tell: @escaping (Event) throws -> Void) throws -> Ending {
    defer { search.stop() }
    if !asksFirst { try listen(tell) }
    try client.begin(steps.map { .prepare($0) }) { [unowned self] step, update in
      try take(update, of: step, tell)
    }
    if ending == nil { try loop.run() }
    return ending!
  }

  // MARK: -

  private func listen(_ tell: @escaping (Event) throws -> Void) throws {
    isSearching = true
    try search.start(on: loop) { [unowned self] method, event in
      try tell(.search(method, event))
      switch event {
      case .note, .waiting: return
      case .decided(_, let sighting): presence.take(decision: sighting, isReplay: isReplay)
      case .ended(.success(.sighted(let sighting))): presence.take(sighting)
      case .ended(let result): if !search.isRunning { return try finish(result, tell) }
      }
      try proceed(tell)
    }
  }

  private func take(_ update: StepRequest.Update, of step: StepID, _ tell: @escaping (Event) throws -> Void) throws {
    try tell(.request(update))
    switch update {
    case .send, .commanded, .moving: return
    case .answered(_, let policy):
      presence.take(policy, at: step)
      if !isSearching { try listen(tell) }
      try proceed(tell)
    case .failed(let error):
      if commanded != nil { throw error }
      failures[step] = error
      guard steps.contains(where: { failures[$0] == nil }) else { throw failures[steps[0]]! }
      try proceed(tell)
    case .done(let statement):
      // Only what was commanded is done.
      ending = .moved(commanded!, statement)
      loop.stop()
    }
  }

  /// Commands, if that can be done now.
  private func proceed(_ tell: (Event) throws -> Void) throws {
    guard commanded == nil else { return }
    switch presence.verdict {
    case .suffices(let sighting):
      commanded = sighting
      search.stop()
      try tell(.sighted(sighting))
      try client.present(sighting, to: target)
    case .asks(let sighting):
      if let error = failures[sighting.step.id] { throw error }
      try tell(.asks(sighting))
    case .lacks(let sighting, let shortfall):
      guard isSearching, !search.isRunning else { return try tell(.lacks(sighting, shortfall)) }
      end(.lacking(sighting, shortfall))
    case .nothing: return
    }
  }

  /// The last search has ended without a sighting. An earlier one may still wait for the vehicle's answer.
  private func finish(_ result: Result<Finding, any Error>, _ tell: (Event) throws -> Void) throws {
    guard commanded == nil else { return }
    if case .nothing = presence.verdict {
      guard case .undecided(let location, let radio) = try result.get() else { return }
      return end(.undecided(location, radio))
    }
    try proceed(tell)
  }

  private func end(_ ending: Ending) {
    self.ending = ending
    loop.stop()
  }
}
