import Cryptography
package import Domain
package import StepProtocol

/// What makes each command valid only once: this run's epoch, its challenges, and the commands that it has seen.
///
/// None of it survives a restart, and none of it needs to: a new epoch invalidates all older challenges. All of it is
/// bounded, so that not even a rider with a valid token can make it grow. Nobody's questions make another's challenge
/// unknown: what is kept is not what was given, but what was used.
package struct Session: Sendable {
  /// How long a challenge can be used, milliseconds.
  package static let challengeLifetime: Int64 = 10_000
  /// How far in the future a deadline may be, milliseconds.
  package static let longestDeadline: Int64 = 10_000
  static let remembered = 1024
  /// How many uses are kept at most, and how many of them when there is no room for one more. A device has one for each
  /// step at the most, and only while a challenge that it voids is not too old anyway.
  package static let mostUses = 16_384
  private static let keptUses = mostUses * 3 / 4

  package let epoch: [UInt8]
  private let steps: [StepID]
  private var maker = ChallengeMaker()
  /// What each device has used for each step, by `ChallengeMaker.name`.
  private var uses: [UInt64: Use] = [:]
  /// When uses that are too old were last removed, on the controller's clock, milliseconds.
  private var swept: Int64 = 0
  /// The challenges of all devices for all steps are void up to this number.
  private var voidForAll: Int64 = 0
  /// For each step, the challenges of all devices are void up to this number.
  private var stopped: [StepID: Int64] = [:]
  /// The used challenges, so that a second copy of a command is answered as one.
  private var used: RecentSet<[UInt8]>
  private var seen: RecentSet<CommandDigest>
  /// The stops that came. A stop has no challenge, so only this set rejects a replayed stop. Other commands are kept in
  /// `seen`, so that they cannot push a stop out of this set.
  private var stops: RecentSet<CommandDigest>

  /// What a device has used for a step. It has numbers in place of challenges.
  private struct Use: Sendable {
    /// The device's challenges for the step are void up to this number.
    var void: Int64
    /// The last good challenge; 0 is none.
    var good: Int64
  }

  /// - Parameters:
  ///   - steps: the vehicle's.
  ///   - used: the challenges that were used before this start, according to the journal.
  package init(epoch: [UInt8], steps: [StepID], used: [[UInt8]]) {
    self.epoch = epoch
    self.steps = steps
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
    maker.challenge(for: device, step, at: clock)
  }

  /// Whether the epoch is the epoch of this run.
  package func isPresent(_ epoch: [UInt8]) -> Bool { constantTimeEqual(epoch, self.epoch) }

  /// Invalidates all challenges of a step: after a stop no older command moves the step.
  package mutating func void(for step: StepID) { stopped[step] = maker.last }

  /// Whether a redeemed move is still valid: neither a later command of its device nor a stop has voided it.
  package func stands(_ move: Command.Move, by device: VerificationKey, for step: StepID) -> Bool {
    guard let number = maker.number(of: move.challenge, for: device, step) else { return false }
    return number == uses[maker.name(of: device, step)]?.good && number > stopped[step, default: 0]
  }

  /// Uses up the challenge of a command, and the device's older ones for that step. A valid challenge voids all others
  /// of this device for this step, so that an older, delayed command does not move the step after a newer one.
  ///
  /// - Returns: why the challenge is not valid, or nil.
  package mutating func redeem(
    _ move: Command.Move, by device: VerificationKey, for step: StepID, at clock: Int64
  ) -> RefusalCode? {
    // Challenges are not secret: the statement publishes them. So a plain lookup is safe.
    if used.contains(move.challenge) { return .replayed }
    guard isPresent(move.epoch), let given = given(move.challenge, for: device, expecting: step) else {
      return .expired
    }
    let name = maker.name(of: device, given.step)
    let use = uses[name] ?? Use(void: 0, good: 0)
    guard given.number > max(voidForAll, stopped[given.step, default: 0], use.void) else { return .expired }
    used.insert(move.challenge)
    guard !Session.isTooOld(given.number, at: clock) else { return .expired }
    makeRoom(at: clock)
    guard given.step == step, clock < move.deadline, move.deadline <= clock + Session.longestDeadline else {
      uses[name] = Use(void: given.number, good: use.good)
      return .expired
    }
    uses[name] = Use(void: maker.number(at: clock), good: given.number)
    return nil
  }

  /// The number of a challenge of this device, and its step.
  private func given(
    _ challenge: [UInt8], for device: VerificationKey, expecting step: StepID
  ) -> (number: Int64, step: StepID)? {
    // A command may arrive on another step's topic than that of its challenge, and uses it up all the same.
    for candidate in [step] + steps.filter({ $0 != step }) {
      if let number = maker.number(of: challenge, for: device, candidate) { return (number, candidate) }
    }
    return nil
  }

  private static func isTooOld(_ number: Int64, at clock: Int64) -> Bool {
    clock - ChallengeMaker.time(of: number) >= challengeLifetime
  }

  /// Forgets the uses that void only challenges that are too old anyway. If there is still no room, it forgets the
  /// oldest uses too: whatever these void is void for everybody then.
  private mutating func makeRoom(at clock: Int64) {
    guard uses.count >= Session.mostUses || clock - swept >= Session.challengeLifetime else { return }
    swept = clock
    uses = uses.filter { !Session.isTooOld($0.value.void, at: clock) }
    guard uses.count > Session.keptUses else { return }
    voidForAll = uses.values.map(\.void).sorted()[uses.count - Session.keptUses - 1]
    uses = uses.filter { $0.value.void > voidForAll }
  }
}

/// A set that forgets its oldest element when it is full.
package struct RecentSet<Element: Hashable & Sendable>: Sendable {
  private let capacity: Int
  private var order: [Element] = []
  private var oldest = 0
  private var elements: Set<Element> = []

  package init(capacity: Int) { self.capacity = capacity }

  package func contains(_ element: Element) -> Bool { elements.contains(element) }

  /// False if the element is already in the set.
  @discardableResult
  package mutating func insert(_ element: Element) -> Bool {
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
