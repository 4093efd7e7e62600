import Domain
import Operator
import StepProtocol
package import Store

/// Whether the rows of what a vehicle has reported are what it has signed, and whether one is missing: for `stepfleet
/// check`.
///
/// Each event names the digest of the one before, so the signatures of the newest one, and of the last one before each
/// break, speak for all. What was removed because of its age is missing at the begin alone.
package struct EventCheck {
  private let name: String
  /// That verifies what the vehicle signs now; nil if it is unknown.
  private let key: VerificationKey?
  private var known: [EventDigest: Int64] = [:]
  private var end: EventPlace?
  private var last: SignedEvent?
  /// The last row's number among the vehicle's.
  private var place: Int64?
  private var defects: [String] = []

  /// - Parameters:
  ///   - name: the vehicle's.
  ///   - time: what was heard before then may have been removed because of its age, Unix time.
  /// - Returns: one line for each defect.
  package static func defects(
    of vehicle: String, named name: String, keptSince time: Int64, in store: any Store
  ) async throws -> [String] {
    // One look: a server may hear more meanwhile, and remove what is old.
    try await store.read { transaction in
      var check = EventCheck(name: name, key: try VehicleTable.record(of: vehicle, in: transaction)?.signingKey)
      var place: Int64 = -1
      while true {
        let rows = try transaction.run(
          """
          SELECT place, digest, sequence, finding, text FROM event WHERE vehicle = ? AND place > ?
          ORDER BY place LIMIT 1000
          """, [.text(vehicle), .integer(place)])
        guard let last = rows.last else { break }
        for row in rows { check.take(row, of: vehicle) }
        place = last.integer("place")
      }
      let end = try transaction.run("SELECT count, digest, heard FROM event_end WHERE vehicle = ?", [.text(vehicle)])
      if let end = end.first { check.finish(end, keptSince: time) }
      return check.defects
    }
  }

  private init(name: String, key: VerificationKey?) { (self.name, self.key) = (name, key) }

  private mutating func note(_ text: String) { defects.append("what \(name) has reported: \(text)") }

  private mutating func take(_ row: Row, of vehicle: String) {
    let (number, place) = (row.integer("sequence"), row.integer("place"))
    guard let signed = try? SignedEvent(kept: Array(row.text("text").utf8)), signed.event.sequence == number,
      signed.digest.text == row.text("digest"), signed.event.vehicle.description == vehicle
    else {
      note("the row of event \(number) is not what the vehicle has signed")
      self.place = place
      return
    }
    if row.optionalText("finding") != nil, let last { verify(last, "event \(last.event.sequence), before a break,") }
    // The first of a chain stays, and what follows it may have been removed.
    let mayFollowGap = last.map { $0.event.sequence == 1 } ?? true
    if let before = self.place, place != before + 1, !mayFollowGap {
      let count = place - before - 1
      note("\(count == 1 ? "1 row" : "\(count) rows") before event \(number): missing")
    } else if !mayFollowGap, row.optionalText("finding") == nil {
      let findings =
        EventChain.findings(signed.event, follows: known[signed.event.previous], after: end)
        ?? EventChain.gap(before: signed.event, after: end)
      for finding in findings { note("event \(number): \(finding.text); that was not so when it was heard") }
    }
    known[signed.digest] = number
    (end, last, self.place) = (signed.place, signed, place)
  }

  private mutating func finish(_ end: Row, keptSince time: Int64) {
    let isOld = end.optionalInteger("heard").map { $0 < time } ?? true
    // Of old ones, the first of each chain stays.
    let mayEnd = isOld && (last.map { $0.event.sequence == 1 } ?? true)
    if end.integer("count") > 0, !mayEnd, end.integer("count") != place || end.text("digest") != last?.digest.text {
      note("the newest events are missing")
    }
    if let last { verify(last, "the newest event") }
  }

  private mutating func verify(_ signed: SignedEvent, _ which: String) {
    guard let key, (try? VehicleEvent(verifying: signed.text, by: key)) == nil else { return }
    note("\(which) is not signed by its key, unless that was changed since")
  }
}
