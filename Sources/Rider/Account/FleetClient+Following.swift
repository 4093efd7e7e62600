import Encoding
import HTTP

/// A list at the server that is followed, as it was read last.
package struct FollowedList<Item: Sendable>: Sendable {
  package let items: [Item]
  /// The server's tag for the list (RFC 9110, 8.8.3); nil from a server that gives none.
  fileprivate let tag: String?
  /// Whether the server's answer comes when the list changes. Otherwise it came at once, and asking again at once
  /// would be too often.
  package let isAwaited: Bool
}

extension FleetClient {
  /// How long a server may wait for a change until it answers, seconds.
  static var wait: Int { 25 }

  /// Reads the vehicles, and waits for a change if they are known already.
  ///
  /// - Parameters:
  ///   - known: what was read last; nil for nothing.
  ///   - time: when the vehicles must be free; nil for all vehicles.
  ///   - zone: the name of the zone where they must stand; nil for anywhere.
  package func vehicles(
    since known: FollowedList<FleetVehicle>?, free time: Range<Int64>? = nil, in zone: String? = nil
  ) throws -> FollowedList<FleetVehicle> {
    try follow(known, "vehicles", vehicleQuery(free: time, in: zone), isWhole: true) { json throws(FleetError) in
      try FleetVehicle(json, from: server.host)
    }
  }

  /// Reads the bookings, and waits for a change if they are known already.
  ///
  /// - Parameter all: whether to read all, instead of the newest, which include all that are not over.
  package func bookings(since known: FollowedList<Booking>?, all: Bool) throws -> FollowedList<Booking> {
    try follow(known, "bookings", [], isWhole: all) { json throws(FleetError) in
      try Booking(json, from: server.host)
    }
  }

  /// - Parameter isWhole: whether to read all pages, and not the first one alone.
  private func follow<Item>(
    _ known: FollowedList<Item>?, _ list: String, _ query: [String], isWhole: Bool,
    _ read: (JSON) throws(FleetError) -> Item
  ) throws -> FollowedList<Item> {
    var headers = [HTTPRequest.Header("Prefer", "wait=\(Self.wait)")]
    if let tag = known?.tag { headers.append(.init("If-None-Match", tag)) }
    let first = try page(of: list, query, after: nil, headers: headers)
    let isAwaited = first.headers["preference-applied"] != nil
    if first.status == 304, let known {
      return FollowedList(items: known.items, tag: known.tag, isAwaited: isAwaited)
    }
    let items = try pages(of: list, query, from: first, isWhole: isWhole, read)
    return FollowedList(items: items, tag: first.headers["etag"], isAwaited: isAwaited || known == nil)
  }
}
