import Booking
import Encoding
import GeoJSON
import Store

/// The rows of zones.
enum ZoneTable {
  /// How many there may be: each request for a parking zone looks at all.
  static let most: Int64 = 500

  /// All, in no order.
  static func all(in transaction: borrowing Transaction) throws(StoreError) -> [Row] {
    try transaction.run("SELECT id, name, is_parking, area FROM zone")
  }

  static func count(in transaction: borrowing Transaction) throws(StoreError) -> Int64 {
    try transaction.run("SELECT count(*) AS n FROM zone")[0].integer("n")
  }

  /// - Throws: `StoreError.constraint` if there is a zone of that name.
  static func insert(_ zone: FleetZone, at now: Int64, in transaction: borrowing Transaction) throws(StoreError) {
    try transaction.run(
      "INSERT INTO zone (id, name, is_parking, area, created) VALUES (?, ?, ?, ?, ?)",
      [
        .text(zone.id), .text(zone.name), .integer(zone.isParking ? 1 : 0), .text(GeoJSON.json(of: zone.area).text),
        .integer(now),
      ])
  }

  /// - Returns: whether there was a zone of that name.
  static func remove(_ name: String, in transaction: borrowing Transaction) throws(StoreError) -> Bool {
    try !transaction.run("DELETE FROM zone WHERE name = ? RETURNING id", [.text(name)]).isEmpty
  }
}

extension FleetZone {
  /// - Throws: if the area cannot be read.
  init(_ row: Row) throws {
    self.init(
      id: row.text("id"), name: row.text("name"), isParking: row.integer("is_parking") != 0,
      area: try GeoJSON.area(in: JSON(parsing: row.text("area").utf8)))
  }
}
