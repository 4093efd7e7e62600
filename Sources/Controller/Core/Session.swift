import Cryptography
package import Domain
package import StepProtocol

/// What makes a command good once: the epoch of this run, the challenges that it gave out, and what it has seen.
///
/// Nothing of it survives a restart, and nothing needs to: a new epoch makes every older challenge worthless. All of
/// it is bounded, so that even a rider with a valid token cannot make it grow.
package struct Session: Sendable {
  /// How long a challenge can be used, milliseconds.
  package static let challengeLifetime: Int64 = 10_000
  /// How far ahead a deadline may lie, milliseconds.
  package static let longestDeadline: Int64 = 10_000
  /// How many unused challenges one device may hold, so that no device can crowd out another's.
  static let challengesPerDevice = 8
  static let challengesInAll = 256
  static let remembered = 1024

  package let epoch: [UInt8]
  private var challenges: [Challenge] = []
  /// The last challenge that each device used for each step, until a stop or a later command voids it.
  private var named: [Challenge] = []
  private var used: RecentSet<[UInt8]>
  private var seen: RecentSet<CommandDigest>
  /// The stops that came. A stop has no challenge, so only this set rejects a replayed one. Other commands are kept in
  /// `seen`, so that they cannot push a stop out of this set.
  private var stops: RecentSet<CommandDigest>

  private struct Challenge: Sendable {
    let bytes: [UInt8]
    let device: VerificationKey
    let step: StepID
    let given: Int64
  }

  /// - Parameter used: challenges that the journal says were used before this start.
  package init(epoch: [UInt8], used: [[UInt8]]) {
    self.epoch = epoch
    self.used = RecentSet(capacity: Session.remembered)
    seen = RecentSet(capacity: Session.remembered)
    stops = RecentSet(capacity: Session.remembered)
    for challenge in used { self.used.insert(challenge) }
  }

  /// Takes note of a command; false when the very same one came before.
  package mutating func admit(_ command: CommandDigest, _ request: Command.Request) -> Bool {
    if case .stop = request { stops.insert(command) } else { seen.insert(command) }
  }

  /// A new challenge for a device and a step.
  package mutating func challenge(for device: VerificationKey, _ step: StepID, at clock: Int64) -> [UInt8] {
    challenges.removeAll { clock - $0.given >= Session.challengeLifetime }
    let own = challenges.indices.filter { challenges[$0].device == device }
    if own.count >= Session.challengesPerDevice {
      challenges.remove(at: own[0])
    } else if challenges.count >= Session.challengesInAll {
      challenges.removeFirst()
    }
    let bytes = randomBytes(Statement.challengeSize)
    challenges.append(Challenge(bytes: bytes, device: device, step: step, given: clock))
    return bytes
  }

  /// Whether an epoch is that of this run.
  package func isPresent(_ epoch: [UInt8]) -> Bool { constantTimeEqual(epoch, self.epoch) }

  /// Makes every challenge worthless that was given out for a step: after a stop no older command moves it.
  package mutating func void(for step: StepID) {
    challenges.removeAll { $0.step == step }
    named.removeAll { $0.step == step }
  }

  /// Whether nothing has voided a move since it was redeemed: neither a later command of its device nor a stop.
  package func stands(_ move: Command.Move) -> Bool { named.contains { $0.bytes == move.challenge } }

  /// Uses up the challenge of a command. If it is good, it voids all others of this device for this step: an older
  /// command that was held back on its way does not move the step after a newer one.
  ///
  /// - Returns: why it is not good, or nil.
  package mutating func redeem(
    _ move: Command.Move, by device: VerificationKey, for step: StepID, at clock: Int64
  ) -> RefusalCode? {
    // Challenges are no secret: they stand in the statement. So they may be looked up like any other value.
    if used.contains(move.challenge) { return .replayed }
    guard isPresent(move.epoch),
      let index = challenges.firstIndex(where: { $0.bytes == move.challenge && $0.device == device })
    else { return .expired }
    let challenge = challenges.remove(at: index)
    used.insert(challenge.bytes)
    guard challenge.step == step, clock - challenge.given < Session.challengeLifetime, clock < move.deadline,
      move.deadline <= clock + Session.longestDeadline
    else { return .expired }
    challenges.removeAll { $0.device == device && $0.step == step }
    named.removeAll { $0.device == device && $0.step == step }
    if named.count >= Session.challengesInAll { named.removeFirst() }
    named.append(challenge)
    return nil
  }
}

/// A set that forgets its oldest element when it is full.
struct RecentSet<Element: Hashable & Sendable>: Sendable {
  private let capacity: Int
  private var order: [Element] = []
  private var oldest = 0
  private var elements: Set<Element> = []

  init(capacity: Int) { self.capacity = capacity }

  func contains(_ element: Element) -> Bool { elements.contains(element) }

  /// False when it was there already.
  @discardableResult
  mutating func insert(_ element: Element) -> Bool {
    guard elements.insert(element).inserted else { return false }
    if order.count < capacity {
      order.append(element)
    } else {
      elements.remove(order[oldest])
      order[oldest] = element
      oldest = (oldest + 1) % capacity
    }
    return true
  }
}
