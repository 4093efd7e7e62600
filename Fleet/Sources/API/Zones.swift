import Booking
import Domain
import Encoding
import GeoJSON
import Geography
import Store
import Web

/// Parts of the ground that the operator has named.
extension FleetService {
  /// By name.
  func zones() async throws -> [FleetZone] { try await known.zones() }

  func zone(_ id: String) async throws -> FleetZone {
    guard let zone = try await zones().first(where: { $0.id == id }) else { throw FleetRefusal.noSuchZone }
    return zone
  }

  /// The zone of that name, or else the only one whose name is meant.
  func zone(named name: String) async throws -> FleetZone {
    let zones = try await zones()
    if let zone = zones.first(where: { identical($0.name, name) }) { return zone }
    let meant = zones.filter { Vehicle.isMeant($0.name, by: name) }
    guard let zone = meant.first else { throw FleetRefusal.noSuchZone }
    guard meant.count == 1 else { throw FleetRefusal.severalZones(name) }
    return zone
  }

  /// - Parameter json: the area, as `GeoJSON.area` reads it.
  func addZone(_ name: String, isParking: Bool, _ json: JSON) async throws -> FleetZone {
    try FleetZone.checkName(name)
    let area: Area
    // As it is kept: rounded to a centimetre.
    do { area = try GeoJSON.area(in: GeoJSON.json(of: GeoJSON.area(in: json))) } catch {
      throw FleetRefusal.badArea("\(error)")
    }
    if FleetZone.isSwapped(area, among: try await known.all().compactMap(\.place?.position)) {
      let first = Area.Location(polygon: 1, ring: 1, vertex: 1)
      throw FleetRefusal.badArea(
        """
        \(first): the axes are swapped, it seems: no vehicle is near, and one would be if latitude and longitude were \
        exchanged. GeoJSON has the longitude first, --point the latitude
        """)
    }
    let (zone, now) = (
      FleetZone(id: UUID.random().description, name: name, isParking: isParking, area: area), clock()
    )
    do {
      try await store.write { transaction in
        guard try ZoneTable.count(in: transaction) < ZoneTable.most else {
          throw FleetRefusal.tooManyZones(ZoneTable.most)
        }
        try ZoneTable.insert(zone, at: now, in: transaction)
        try FleetChange.fleet.announce(in: transaction)
      }
    } catch StoreError.constraint { throw FleetRefusal.zoneTaken }
    known.forget()
    return zone
  }

  /// - Returns: the name of the zone that was removed: of that name, also one that cannot be read, or else the only
  ///   one that is meant.
  func removeZone(named name: String) async throws -> String {
    if try await remove(name) { return name }
    let meant = try await zone(named: name).name
    guard try await remove(meant) else { throw FleetRefusal.noSuchZone }
    return meant
  }

  private func remove(_ name: String) async throws -> Bool {
    let isRemoved = try await store.write { transaction in
      guard try ZoneTable.remove(name, in: transaction) else { return false }
      try FleetChange.fleet.announce(in: transaction)
      return true
    }
    if isRemoved { known.forget() }
    return isRemoved
  }
}

extension FleetZone {
  /// For lists: without the area, which may have 200 vertices.
  var summary: JSON {
    [
      "id": .string(id), "name": .string(name), "parking": .bool(isParking),
      "square_metres": .integer(Int64(area.squareMetres)),
      "middle": [
        "latitude": .rounded(area.middle.latitude, places: 5), "longitude": .rounded(area.middle.longitude, places: 5),
      ],
    ]
  }

  var json: JSON { .object((summary.object ?? []) + [.init("area", GeoJSON.json(of: area))]) }
}

extension Parking {
  var json: JSON {
    ["zone": .string(zone), "metres": .integer(metres), "placed_at": .string(Timestamp.text(placed))]
  }
}
