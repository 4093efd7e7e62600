import Booking
import Encoding
import Store
import Web

/// How the fleet's vehicles were used, by vehicle and month (UTC).
extension FleetService {
  /// What a vehicle did in a month.
  private struct Use {
    var bookings: Int64 = 0
    /// Of the bookings that were used, up to now.
    var seconds: Int64 = 0
    var openings: Int64 = 0
    /// By their codes.
    var refusals: [String: Int64] = [:]
  }

  /// The most months that one answer has.
  static let mostMonths = 120

  /// The months in their order, and in each the vehicles by name. A vehicle that was not used in a month is left out.
  ///
  /// - Parameter since: a time in the first month, Unix time; nil for the eleventh month before this one.
  func statistics(since: Int64?) async throws -> [JSON] {
    let now = clock()
    var month = Month(of: now)
    for _ in 0..<(since == nil ? 12 : Self.mostMonths) - 1 where month.begin > since ?? 0 { month = month.previous }
    var lines: [JSON] = []
    while month.begin <= now {
      let (uses, names) = try await store.read { [month] transaction in
        (try Self.uses(in: month, until: now, in: transaction), try VehicleTable.names(in: transaction))
      }
      let sorted = uses.map { (name: names[$0.key] ?? $0.key, use: $0.value) }.sorted { $0.name < $1.name }
      lines += sorted.map { name, use in
        [
          "month": .string(month.text), "vehicle": .string(name), "bookings": .integer(use.bookings),
          "hours": .rounded(Double(use.seconds) / 3600, places: 1), "openings": .integer(use.openings),
          "refusals": .object(use.refusals.sorted { $0.key < $1.key }.map { .init($0.key, .integer($0.value)) }),
        ]
      }
      month = month.next
    }
    return lines
  }

  /// By the vehicles' ids.
  private static func uses(
    in month: Month, until now: Int64, in transaction: borrowing Transaction
  ) throws(StoreError) -> [String: Use] {
    let range = [Value.integer(month.begin), .integer(month.next.begin)]
    var uses: [String: Use] = [:]
    for row in try transaction.run(
      """
      SELECT vehicle, count(*) AS count,
        CAST(sum(CASE WHEN ends < ? THEN ends ELSE CAST(? AS BIGINT) END - begins) AS BIGINT) AS seconds
      FROM booking
      WHERE begins >= ? AND begins < ? AND begins <= ? AND has_access = 1 AND state IN ('booked', 'active', 'ended')
      GROUP BY vehicle
      """, [.integer(now), .integer(now)] + range + [.integer(now)])
    {
      uses[row.text("vehicle"), default: Use()].bookings = row.integer("count")
      uses[row.text("vehicle"), default: Use()].seconds = row.integer("seconds")
    }
    // By the server's clock: a vehicle's may be wrong.
    for row in try transaction.run(
      """
      SELECT vehicle, kind, COALESCE(code, '') AS code, count(*) AS count FROM event
      WHERE heard >= ? AND heard < ?
        AND (kind = 'refused' OR kind = 'began' AND position = 'open' AND jti IS NOT NULL)
      GROUP BY vehicle, kind, COALESCE(code, '')
      """, range)
    {
      let (vehicle, count) = (row.text("vehicle"), row.integer("count"))
      if row.text("kind") == "began" {
        uses[vehicle, default: Use()].openings += count
      } else {
        uses[vehicle, default: Use()].refusals[row.text("code"), default: 0] += count
      }
    }
    return uses
  }
}

/// A month of the calendar, in UTC.
struct Month {
  /// `2026-12`.
  let text: String

  init(of time: Int64) { text = String(Timestamp.text(time).prefix(7)) }

  /// Its first second, Unix time.
  var begin: Int64 { Timestamp.read("\(text)-01T00:00:00Z") ?? 0 }
  var previous: Month { Month(of: max(0, begin - 1)) }
  /// 31 days after a month's first day is always in the next month: no month has more, and none less than 28.
  var next: Month { Month(of: begin + 31 * 86_400) }
}
