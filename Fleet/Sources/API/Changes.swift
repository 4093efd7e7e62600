import Store
import Synchronization

/// What a transaction changes: every server of the database hears of it after the commit.
enum FleetChange: Equatable {
  /// A vehicle, or a zone.
  case fleet
  /// Where a vehicle stands. It happens often, and nothing else changes.
  case place
  /// A booking, by the ids of its account and its vehicle.
  case booking(account: String, vehicle: String)

  private static let bookingWord = "booking"

  /// - Returns: nil if the text announces something else.
  init?(_ text: String) {
    switch text {
    case "vehicle": self = .fleet
    case "place": self = .place
    default:
      let parts = text.split(separator: " ")
      guard parts.count == 3, parts[0] == Self.bookingWord else { return nil }
      self = .booking(account: String(parts[1]), vehicle: String(parts[2]))
    }
  }

  private var text: String {
    switch self {
    case .fleet: "vehicle"
    case .place: "place"
    case .booking(let account, let vehicle): "\(Self.bookingWord) \(account) \(vehicle)"
    }
  }

  func announce(in transaction: borrowing Transaction) throws(StoreError) { try transaction.announce(text) }
}

/// The requests that wait until what they have read changes (RFC 7240, 4.3).
///
/// The first change is told at once. What changes in the fifth of a second after that is told together, so that many
/// changes cost those who wait one look.
final class Changes: Sendable {
  /// What a request waits for.
  enum Subject: Hashable {
    /// Any vehicle's state or place, or a zone.
    case fleet
    /// One vehicle's state or place.
    case vehicle(String)
    /// An account's bookings.
    case bookings(String)
  }

  /// How many of an account's requests may wait at once. A further one is answered at once.
  static let mostOfAccount = 8
  private static let pause = Duration.milliseconds(200)

  fileprivate struct Waiter {
    let subject: Subject
    let account: String
    /// What it waits for has changed since it was told so last.
    var isChanged = false
    var continuation: CheckedContinuation<Void, Never>?
  }

  fileprivate struct State {
    var waiters: [Int: Waiter] = [:]
    var next = 0
    /// How many of each account wait.
    var counts: [String: Int] = [:]
    var changed: Set<Subject> = []
    /// Every request that waits for vehicles is to look.
    var areVehiclesChanged = false
    /// Every request is to look.
    var isAllChanged = false
    /// How many waiters were told of a change so far.
    var told = 0
    /// How often the fleet has changed.
    var round = 0
    var isEnding = false
  }

  private let state = Mutex(State())
  private let (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

  /// How often those who wait for the fleet were told that it has changed.
  var round: Int { state.withLock { $0.round } }

  /// How many waiters were told of a change so far.
  var told: Int { state.withLock { $0.told } }

  /// How many wait now.
  var waiting: Int { state.withLock { $0.waiters.values.count { $0.continuation != nil } } }

  /// Whether nothing may be waited for any more.
  var isEnding: Bool { state.withLock { $0.isEnding } }

  /// Notes a change. It is told soon.
  ///
  /// - Parameter change: nil if everything may have changed.
  func note(_ change: FleetChange?) {
    state.withLock { state in
      switch change {
      case .booking(let account, let vehicle):
        state.changed.formUnion([.fleet, .vehicle(vehicle), .bookings(account)])
      case .fleet, .place: state.areVehiclesChanged = true
      case nil: state.isAllChanged = true
      }
    }
    signal.yield()
  }

  /// Tells changes to those who wait, until the task is cancelled.
  ///
  /// - Parameter hasFleetChanged: whether a booking has made a difference to those who wait for the fleet. Most are for
  ///   another time.
  func tell(_ hasFleetChanged: () async -> Bool) async {
    for await _ in signals {
      var (changed, areVehicles, isAll) = state.withLock { state in
        defer { (state.changed, state.areVehiclesChanged, state.isAllChanged) = ([], false, false) }
        if state.isAllChanged || state.areVehiclesChanged || state.changed.contains(.fleet) { state.round += 1 }
        return (state.changed, state.areVehiclesChanged, state.isAllChanged)
      }
      if !isAll, !areVehicles, changed.contains(.fleet) {
        let isAwaited = state.withLock { $0.waiters.values.contains { $0.subject == .fleet } }
        if isAwaited, await !hasFleetChanged() { changed.remove(.fleet) }
      }
      let woken = state.withLock { state in
        let woken = state.wake { waiter in
          if case .bookings = waiter.subject {
            isAll || changed.contains(waiter.subject)
          } else {
            isAll || areVehicles || changed.contains(waiter.subject)
          }
        }
        state.told += woken.count
        return woken
      }
      for continuation in woken { continuation.resume() }
      try? await Task.sleep(for: Self.pause)
    }
  }

  /// Ends all waiting, for good.
  func end() {
    let woken = state.withLock { state in
      state.isEnding = true
      return state.wake { _ in true }
    }
    for continuation in woken { continuation.resume() }
  }

  /// Begins to look for changes. What changes from now on ends the next `Watch.change`.
  ///
  /// - Returns: nil if the account has too many that wait, or the server ends: nothing may be waited for.
  func watch(_ subject: Subject, by account: String) -> Watch? {
    state.withLock { state in
      guard !state.isEnding, state.counts[account, default: 0] < Self.mostOfAccount else { return nil }
      state.counts[account, default: 0] += 1
      state.next += 1
      state.waiters[state.next] = Waiter(subject: subject, account: account)
      return Watch(changes: self, number: state.next)
    }
  }

  /// One request's look at a subject. It ends with its owner.
  final class Watch: Sendable {
    private let changes: Changes
    private let number: Int

    fileprivate init(changes: Changes, number: Int) { (self.changes, self.number) = (changes, number) }

    deinit { changes.end(number) }

    /// Waits for a change since the call before, or since the watch began.
    func change(before deadline: ContinuousClock.Instant) async {
      let timer = Task { [changes, number] in
        try await Task.sleep(until: deadline, clock: .continuous)
        changes.wake(number)
      }
      await withTaskCancellationHandler {
        await changes.change(number)
      } onCancel: {
        changes.wake(number)
      }
      timer.cancel()
    }
  }

  private func change(_ number: Int) async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        guard let waiter = state.waiters[number], !waiter.isChanged, !state.isEnding else {
          state.waiters[number]?.isChanged = false
          return true
        }
        state.waiters[number]?.continuation = continuation
        return false
      }
      if isOver { continuation.resume() }
    }
  }

  private func wake(_ number: Int) {
    state.withLock { $0.wake(number) }?.resume()
  }

  private func end(_ number: Int) {
    state.withLock { state in
      guard let waiter = state.waiters.removeValue(forKey: number), let count = state.counts[waiter.account] else {
        return
      }
      state.counts[waiter.account] = count > 1 ? count - 1 : nil
    }
  }
}

extension Changes.State {
  /// - Returns: what to resume, outside of the lock.
  fileprivate mutating func wake(_ isMeant: (Changes.Waiter) -> Bool) -> [CheckedContinuation<Void, Never>] {
    waiters.filter { isMeant($0.value) }.keys.compactMap { wake($0) }
  }

  /// Wakes one: at once if it waits, else when it begins to.
  fileprivate mutating func wake(_ number: Int) -> CheckedContinuation<Void, Never>? {
    guard let continuation = waiters[number]?.continuation else {
      waiters[number]?.isChanged = true
      return nil
    }
    waiters[number]?.continuation = nil
    return continuation
  }
}
