import Encoding
import GeoJSON
import Geography
import Testing

@Suite("GeoJSON") struct GeoJSONTests {
  private static let square =
    "[[9.1829,48.7758],[9.18372,48.7758],[9.18372,48.77602],[9.1829,48.77602],[9.1829,48.7758]]"
  private static let polygon = #"{"type":"Polygon","coordinates":[\#(square)]}"#

  private static func area(_ text: String) throws -> Area { try GeoJSON.area(in: JSON(parsing: text.utf8)) }

  private static func error(_ text: String) -> GeoJSONError? {
    do {
      _ = try area(text)
      return nil
    } catch { return error as? GeoJSONError }
  }

  @Test(
    "reads a polygon alone, as a feature, as the only one of a collection, and as a multipolygon",
    arguments: [
      polygon, #"{"type":"Feature","properties":{"name":"Yard"},"geometry":\#(polygon)}"#,
      #"{"type":"FeatureCollection","features":[{"type":"Feature","properties":null,"geometry":\#(polygon)}]}"#,
      #"{"type":"MultiPolygon","coordinates":[[\#(square)]],"bbox":[9,48,10,49]}"#,
      polygon.replacing("48.7758]", with: "48.7758,251.3]"),
      polygon.replacing(
        "{", with: #"{"crs":{"type":"name","properties":{"name":"urn:ogc:def:crs:OGC:1.3:CRS84"}},"#),
    ])
  func reads(text: String) throws {
    #expect(try Self.area(text).squareMetres == 1475)
  }

  @Test("writes outer rings counterclockwise and holes clockwise, whatever was read")
  func writes() throws {
    let hole = "[[9.183,48.7759],[9.1831,48.7759],[9.1831,48.776],[9.183,48.776],[9.183,48.7759]]"
    let text = #"{"type":"Polygon","coordinates":[\#(Self.square),\#(hole)]}"#
    let written = GeoJSON.json(of: try Self.area(text))
    let turned = "[[9.183,48.776],[9.1831,48.776],[9.1831,48.7759],[9.183,48.7759],[9.183,48.776]]"
    #expect(written.text == #"{"type":"Polygon","coordinates":[\#(Self.square),\#(turned)]}"#)
    #expect(try GeoJSON.json(of: GeoJSON.area(in: written)) == written)
  }

  @Test("what is no area is refused, with its ring and vertex")
  func errors() {
    func location(_ vertex: Int? = nil) -> Area.Location { .init(polygon: 1, ring: 1, vertex: vertex) }
    let cases: [(String, GeoJSONError)] = [
      ("{}", .type), ("[]", .type), (#"{"type":"Point","coordinates":[9,48]}"#, .type),
      (#"{"type":"Feature","geometry":null}"#, .noGeometry),
      (#"{"type":"FeatureCollection","features":[]}"#, .features(0)),
      (#"{"type":"Polygon","coordinates":[]}"#, .ring(location())),
      (#"{"type":"Polygon","coordinates":[[[9,48],[9,49],[9,48]]]}"#, .ring(location())),
      (Self.polygon.replacing("[9.1829,48.7758]]", with: "[9.1829,48.7757]]"), .open(location())),
      (Self.polygon.replacing("[9.18372,48.7758]", with: "[9.18372]"), .position(location(2))),
      (Self.polygon.replacing("[9.18372,48.7758]", with: "[\"9.18372\",48.7758]"), .position(location(2))),
      (Self.polygon.replacing("[9.18372,48.7758]", with: "[9.18372,1e400]"), .position(location(2))),
      (Self.polygon.replacing("[9.18372,48.7758]", with: "[48.7758,99.18372]"), .swapped(location(2))),
      (Self.polygon.replacing("[9.18372,48.7758]", with: "[1048.7758,9.18372]"), .position(location(2))),
      (Self.polygon.replacing("{", with: #"{"crs":{"properties":{"name":"EPSG:3857"}},"#), .system),
    ]
    for (text, expected) in cases { #expect(Self.error(text) == expected, "\(text)") }
    let crossing = Self.polygon.replacing(
      "[9.18372,48.77602],[9.1829,48.77602]", with: "[9.1829,48.77602],[9.18372,48.77602]")
    #expect(
      Self.error(crossing)?.description
        == "polygon 1, ring 1, vertex 2: the edge that begins here crosses or touches the one that begins at "
        + "polygon 1, ring 1, vertex 4")
  }
}
