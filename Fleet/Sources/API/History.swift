import Encoding
import Store
import Web

/// What vehicles have reported, for the operator.
extension FleetService {
  /// The most that one answer has.
  static let longestHistory: Int64 = 10_000

  func history(_ query: EventTable.Query) async throws -> [JSON] {
    var query = query
    if let name = query.vehicle { query.vehicle = try await named(name).vehicle.id }
    if let begin = query.booking { query.booking = try await bookingMeant(by: begin) }
    query.account = query.account?.lowercased()
    return try await store.read { [query] in try EventTable.history(query, in: $0).map(\.json) }
  }
}
