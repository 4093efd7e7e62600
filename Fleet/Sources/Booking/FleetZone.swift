import Domain
package import GeoJSON
package import Geography

/// A part of the ground that the operator has named.
package struct FleetZone: Sendable, Equatable {
  package let id: String
  package let name: String
  /// Whether bookings should end here.
  package let isParking: Bool
  package let area: Area

  package init(id: String, name: String, isParking: Bool, area: Area) {
    (self.id, self.name, self.isParking, self.area) = (id, name, isParking, area)
  }

  /// Checks the name that an operator gives to a zone: the rule is the vehicles' one.
  package static func checkName(_ name: String) throws(FleetRefusal) {
    guard Vehicle.isName(name) else { throw .badZoneName }
  }

  /// Whether latitude and longitude of an area are exchanged, as far as the vehicles' places tell: no vehicle is near,
  /// and exchanged, one would be.
  package static func isSwapped(_ area: Area, among places: [Coordinate]) -> Bool {
    guard !places.contains(where: { area.distance(to: $0) <= near }) else { return false }
    return places.contains { place in
      guard let swapped = Coordinate(latitude: place.longitude, longitude: place.latitude) else { return false }
      return area.distance(to: swapped) <= near
    }
  }

  /// How far from a zone a fleet's vehicle is at most expected, metres.
  private static let near = 200_000.0
}

/// Where a booking ended, as far as zones tell.
package struct Parking: Sendable, Equatable {
  /// The nearest parking zone, by its name.
  package let zone: String
  /// To its border, rounded up; 0 inside.
  package let metres: Int64
  /// Since when the vehicle's place is known, Unix time.
  package let placed: Int64

  package init(zone: String, metres: Int64, placed: Int64) {
    (self.zone, self.metres, self.placed) = (zone, metres, placed)
  }

  /// - Returns: nil if there is no parking zone.
  package init?(_ place: FleetVehicle.Place, _ zones: [FleetZone]) {
    let distances = zones.lazy.filter(\.isParking).map { (zone: $0.name, metres: $0.area.distance(to: place.position)) }
    guard let nearest = distances.min(by: { $0.metres < $1.metres }),
      let metres = Int64(exactly: nearest.metres.rounded(.up))
    else { return nil }
    self.init(zone: nearest.zone, metres: metres, placed: place.since)
  }
}
