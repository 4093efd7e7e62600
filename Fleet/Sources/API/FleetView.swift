import Booking
import Domain
import Encoding
import GeoJSON
import Synchronization
import Web

/// The vehicles in service as they are at one moment.
///
/// All who watch the fleet share one: a list that many ask for is made once.
final class FleetView: Sendable {
  private let vehicles: [(vehicle: FleetVehicle, bookings: [Booking])]
  /// For which the list says whether a vehicle is free; nil for none.
  private let interval: Interval?
  /// The accounts whose vehicles are in use, by the vehicles' ids.
  private let riders: [String: String]
  /// When it was read, Unix time.
  private let now: Int64
  /// The next moment at which a booking begins or ends, or a vehicle is not in use any more, Unix time; nil for none.
  let next: Int64?
  /// The first page of each list.
  private let pages = Mutex<[ListKey: TaggedPage]>([:])
  private let tags = Mutex<[ListKey: EntityTag]>([:])

  private struct ListKey: Hashable {
    /// The zone's id; nil for anywhere.
    let zone: String?
    /// The account that asks, if it sees more than others: the place of a vehicle that it uses.
    let rider: String?
  }

  /// Different answers that one view keeps. Whoever asks for more of them has them made anew.
  private static let mostKept = 256

  /// - Parameters:
  ///   - vehicles: each with those of its open bookings that `interval` makes necessary; without one, with the present.
  ///   - nextChange: when the next booking that is not among them begins, or one is not in use any more, Unix time.
  init(
    _ vehicles: [(vehicle: FleetVehicle, bookings: [Booking])], interval: Interval?, nextChange: Int64?,
    riders: [String: String], at now: Int64
  ) {
    (self.vehicles, self.interval, self.riders, self.now) = (vehicles, interval, riders, now)
    let moments = vehicles.lazy.flatMap { $0.bookings.map(\.interval) }
    next = [nextMoment(of: moments, after: now), nextChange].compactMap(\.self).min()
  }

  /// Whether every account sees in it what it saw in an earlier one.
  func isSame(as other: FleetView) -> Bool {
    riders == other.riders && vehicles.count == other.vehicles.count
      && zip(vehicles, other.vehicles).allSatisfy { one, two in
        one.vehicle == two.vehicle
          && one.vehicle.state(one.bookings, at: now) == two.vehicle.state(two.bookings, at: other.now)
      }
  }

  /// A page of the list, as an account sees it.
  ///
  /// - Parameter zone: where the vehicles stand; nil for anywhere.
  func page(_ page: Page, in zone: FleetZone?, for account: String) -> JSON {
    page.json(of: found(zone, for: account), "vehicles", name: \.vehicle.name) {
      form($0, for: account).listed(for: interval)
    }
  }

  /// The page, with a tag that changes when anything in the list does: whoever has read several pages of a list waits
  /// for a change of the first one.
  func tagged(_ page: Page, in zone: FleetZone?, for account: String) -> TaggedPage {
    let list = ListKey(zone: zone?.id, rider: riders.values.contains(account) ? account : nil)
    // Somebody may ask for any other page.
    let isUsual = page.isUsual
    if isUsual, let known = pages.withLock({ $0[list] }) { return known }
    let made = TaggedPage(self.page(page, in: zone, for: account), etag: tag(of: list, zone, for: account))
    if isUsual { pages.withLock { if $0.count < Self.mostKept { $0[list] = made } } }
    return made
  }

  private func tag(of list: ListKey, _ zone: FleetZone?, for account: String) -> EntityTag {
    if let known = tags.withLock({ $0[list] }) { return known }
    let made = EntityTag(
      of: JSON.array(found(zone, for: account).map { form($0, for: account).listed(for: interval) }).text)
    tags.withLock { if $0.count < Self.mostKept { $0[list] = made } }
    return made
  }

  private func found(_ zone: FleetZone?, for account: String) -> [(vehicle: FleetVehicle, bookings: [Booking])] {
    guard let zone else { return vehicles }
    return vehicles.filter { vehicle, _ in
      showsPlace(of: vehicle, to: account) && vehicle.place.map { zone.area.contains($0.position) } ?? false
    }
  }

  private func showsPlace(of vehicle: FleetVehicle, to account: String) -> Bool {
    riders[vehicle.id].map { $0 == account } ?? true
  }

  private func form(
    _ item: (vehicle: FleetVehicle, bookings: [Booking]), for account: String
  ) -> VehicleForm {
    VehicleForm(
      vehicle: item.vehicle, bookings: item.bookings, now: now, showsPlace: showsPlace(of: item.vehicle, to: account))
  }
}

/// An answer that a client may have already.
struct TaggedPage: Sendable {
  /// JSON.
  let text: String
  let etag: EntityTag

  /// - Parameter etag: nil for one of this content.
  init(_ json: JSON, etag: EntityTag? = nil) {
    text = json.text
    self.etag = etag ?? EntityTag(of: text)
  }
}

/// The next moment at which one of these begins or ends, Unix time; nil if there is none.
func nextMoment(of intervals: some Sequence<Interval>, after now: Int64) -> Int64? {
  intervals.flatMap { [$0.begin, $0.end] }.filter { $0 > now }.min()
}

/// The view that all share who watch the fleet.
final class SharedView: Sendable {
  private struct Reading {
    let round: Int
    let begun: ContinuousClock.Instant
    let task: Task<FleetView, any Error>
  }

  private let reading = Mutex<Reading?>(nil)
  /// No view is older: a database that tells no changes must not keep the truth from those who wait.
  private static let longest = Duration.seconds(5)

  /// The view that was given out last.
  var present: FleetView? {
    get async { try? await reading.withLock { $0 }?.task.value }
  }

  /// - Parameters:
  ///   - round: how often the fleet has changed: the view is not older.
  ///   - now: Unix time.
  ///   - read: reads a new view.
  func view(
    round: Int, at now: Int64, _ read: @escaping @Sendable () async throws -> FleetView
  ) async throws -> FleetView {
    let known = reading.withLock { $0 }
    if let known, known.round == round, known.begun + Self.longest > .now, let view = try? await known.task.value,
      view.next.map({ now < $0 }) ?? true
    {
      return view
    }
    let task = reading.withLock { present in
      // Another one of those who were woken may have begun.
      if let present, present.round == round, present.task != known?.task { return present.task }
      let task = Task(operation: read)
      present = Reading(round: round, begun: .now, task: task)
      return task
    }
    return try await task.value
  }
}
