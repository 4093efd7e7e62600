import Cryptography
package import Domain
package import StepProtocol

/// What makes each command valid only once: this run's epoch, its challenges, and the commands that it has seen.
///
/// None of it survives a restart, and none of it needs to: a new epoch invalidates all older challenges. All of it is
/// bounded, so that not even a rider with a valid token can make it grow.
package struct Session: Sendable {
  /// How long a challenge can be used, milliseconds.
  package static let challengeLifetime: Int64 = 10_000
  /// How far in the future a deadline may be, milliseconds.
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
  /// The stops that came. A stop has no challenge, so only this set rejects a replayed stop. Other commands are kept in
  /// `seen`, so that they cannot push a stop out of this set.
  private var stops: RecentSet<CommandDigest>

  private struct Challenge: Sendable {
    let bytes: [UInt8]
    let device: VerificationKey
    let step: StepID
    let given: Int64
  }

  /// - Parameter used: the challenges that were used before this start, according to the journal.
  package init(epoch: [UInt8], used: [[UInt8]]) {
    self.epoch = epoch
    self.used = RecentSet(capacity: Session.remembered)
    seen = RecentSet(capacity: Session.remembered)
    stops = RecentSet(capacity: Session.remembered)
    for challenge in used { self.used.insert(challenge) }
  }

  /// Notes a command; false if exactly the same command came before.
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

  /// Whether the epoch is the epoch of this run.
  package func isPresent(_ epoch: [UInt8]) -> Bool { constantTimeEqual(epoch, self.epoch) }

  /// Invalidates all challenges of a step: after a stop no older command moves the step.
  package mutating func void(for step: StepID) {
    challenges.removeAll { $0.step == step }
    named.removeAll { $0.step == step }
  }

  /// Whether a redeemed move is still valid: neither a later command of its device nor a stop has voided it.
  package func stands(_ move: Command.Move) -> Bool { named.contains { $0.bytes == move.challenge } }

  /// Uses up the challenge of a command. A valid challenge voids all others of this device for this step, so that an
  /// older, delayed command does not move the step after a newer one.
  ///
  /// - Returns: why the challenge is not valid, or nil.
  package mutating func redeem(
    _ move: Command.Move, by device: VerificationKey, for step: StepID, at clock: Int64
  ) -> RefusalCode? {
    // Challenges are not secret: the statement publishes them. So a plain lookup is safe.
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

  /// False if the element is already in the set.
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
