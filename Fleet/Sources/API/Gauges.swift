import Booking
import Domain
import Store

/// A number that is read when somebody asks for the metrics (Prometheus, text format 0.0.4).
package struct Gauge: Sendable, Equatable {
  let name: String
  /// What it means, for people.
  let help: String
  /// A label and its value, where several numbers have one name.
  let label: (name: String, value: String)?
  let value: Int64

  package init(_ name: String, _ help: String, _ value: Int64, label: (name: String, value: String)? = nil) {
    (self.name, self.help, self.label, self.value) = ("stepfleet_\(name)", help, label, value)
  }

  package static func == (a: Gauge, b: Gauge) -> Bool {
    a.name == b.name && a.help == b.help && a.value == b.value && a.label?.name == b.label?.name
      && a.label?.value == b.label?.value
  }

  /// - Parameter gauges: those of one name follow one another.
  static func text(of gauges: [Gauge]) -> String {
    var text = ""
    for (index, gauge) in gauges.enumerated() {
      if index == 0 || gauges[index - 1].name != gauge.name {
        text += "# HELP \(gauge.name) \(gauge.help)\n# TYPE \(gauge.name) gauge\n"
      }
      text += "\(gauge.name)\(gauge.label.map { "{\($0.name)=\"\($0.value)\"}" } ?? "") \(gauge.value)\n"
    }
    return text
  }
}

extension FleetService {
  /// What the operator has to know of access: what counts, and which vehicles do not know yet what does not.
  package func gauges() async throws -> [Gauge] {
    let now = clock()
    let (live, overdue, untold, unconfirmed) = try await store.read { transaction in
      (
        try TokenTable.countGiven(at: now, in: transaction),
        Int64(try AccessTable.ofInactiveAccounts(at: now, in: transaction).count),
        try NoticeTable.untold(in: transaction), try NoticeTable.unconfirmed(in: transaction)
      )
    }
    let states = try await store.read { try BookingTable.countOpen(at: now, in: $0) }
    let present = try await store.read { try EventTable.present(in: $0) }
    let silent = try await known.all().filter { vehicle in
      guard vehicle.service == .inService, let id = UUID(vehicle.id) else { return false }
      return presence.isOnline(id, heard: present[vehicle.id]?.heard) != true
    }
    return [
      Gauge("bookings", "Bookings that are not over, by state.", states.booked, label: ("state", "booked")),
      Gauge("bookings", "Bookings that are not over, by state.", states.active, label: ("state", "active")),
      Gauge(
        "silent_vehicles", "Vehicles in service of which the broker does not say that they are there.",
        Int64(silent.count)),
      Gauge("live_tokens", "Tokens that were given, have not ended, and are not revoked.", live),
      Gauge("unrevoked_tokens", "Tokens of suspended accounts that are not revoked yet.", overdue),
      Gauge("untold_notices", "Vehicles whose newest notice the broker does not have.", untold.count),
      Gauge(
        "untold_notices_oldest_seconds", "How long the first of them has waited.",
        untold.oldest.map { max(0, now - $0) } ?? 0),
      Gauge(
        "unconfirmed_notices", "Vehicles that have not said that they obey the newest notice that the broker has.",
        unconfirmed),
    ]
  }
}
