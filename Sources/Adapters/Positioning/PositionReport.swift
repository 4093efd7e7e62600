import Encoding
package import Geography

/// What a receiver of a satellite system knows of its place: a report of gpsd's, of class TPV (gpsd_json(5)).
package struct PositionReport: Equatable, Sendable {
  /// Nil while there is no fix.
  package let position: Coordinate?
  /// Metres that the position may be off; nil where gpsd does not say it.
  package let error: Double?
  /// Metres a second.
  package let speed: Double?
  /// Degrees clockwise from north.
  package let course: Double?

  /// Reads a line of gpsd's.
  ///
  /// - Returns: nil for every other class of reports, and for what is no JSON.
  package init?(line: some Collection<UInt8>) {
    guard let json = try? JSON(parsing: Array(line), maximumDepth: 8), json["class"]?.string == "TPV",
      let mode = json["mode"]?.integer
    else { return nil }
    func number(_ name: String, _ range: ClosedRange<Double>) -> Double? {
      let number: Double? =
        switch json[name] {
        case .integer(let value)?: Double(value)
        case .number(let value)?: value
        default: nil
        }
      return number.flatMap { range.contains($0) ? $0 : nil }
    }
    speed = number("speed", 0...1000)
    course = number("track", 0...360)
    let (east, north) = (number("epx", 0...1e6), number("epy", 0...1e6))
    error = number("eph", 0...1e6) ?? east.flatMap { east in north.map { Vector(x: $0, y: east).length } }
    // 2 is a fix in two dimensions, 3 in three.
    guard mode >= 2, let latitude = number("lat", -90...90), let longitude = number("lon", -180...180) else {
      position = nil
      return
    }
    position = Coordinate(latitude: latitude, longitude: longitude)
  }
}
