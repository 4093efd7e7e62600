import ArgumentParser
import Encoding
import Foundation
import GeoJSON
import Geography

struct ZoneGroup: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "zone", abstract: "Parts of the ground, and where bookings should end.",
    subcommands: [Add.self, List.self, Show.self, Remove.self])

  struct Add: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Names a part of the ground.",
      usage: """
        stepfleet zone add [<options>] <name> --geojson <file>
        stepfleet zone add [<options>] <name> --point <latitude>,<longitude> …
        """,
      discussion: "A zone has up to 200 vertices, and is up to 5 km wide.")
    @OptionGroup var server: ServerOption
    @Flag(help: "Bookings should end here: riders are told if one ends elsewhere.") var parking = false
    @Option(
      help: ArgumentHelp("A polygon or a multipolygon, with holes or without (RFC 7946).", valueName: "file"),
      completion: .file())
    var geojson: String?
    // A southern latitude begins with a hyphen.
    @Option(
      parsing: .unconditionalSingleValue,
      help: ArgumentHelp(
        "A corner, in degrees: three or more, in their order around the zone.", valueName: "latitude,longitude"))
    var point: [String] = []
    @Argument(help: "What people call it.") var name: String

    func validate() throws {
      guard (geojson == nil) != point.isEmpty else { throw ValidationError("give --geojson, or three --point or more") }
      guard geojson != nil || point.count >= 3 else { throw ValidationError("a zone has three --point or more") }
      if let text = point.first(where: { Coordinate(typed: $0) == nil }) {
        throw ValidationError("\(text): a place is LATITUDE,LONGITUDE in degrees, as 48.7758,9.1829")
      }
    }

    func run() throws {
      let area: Area
      if let geojson {
        let json: JSON
        do { json = try JSON(parsing: Self.read(geojson)) } catch let error as JSON.SyntaxError {
          throw ServerError.file(geojson, "is not JSON: \(error)")
        }
        do { area = try GeoJSON.area(in: json) } catch { throw ServerError.file(geojson, "\(error)") }
      } else {
        do { area = try Area([.init(outer: point.compactMap { Coordinate(typed: $0) })]) } catch {
          throw ServerError.usage("\(error)")
        }
      }
      let zone = try server.ask(
        "POST", "/zones", ["name": .string(name), "parking": .bool(parking), "area": GeoJSON.json(of: area)])
      // Whoever has exchanged the axes sees it.
      let middle = [zone["middle"]?["latitude"], zone["middle"]?["longitude"]].map { $0?.text ?? "?" }
      print(
        "\(name): \(zone["square_metres"]?.integer ?? 0) m² around \(middle.joined(separator: ", "))"
          + (parking ? ", for parking" : ""))
    }

    /// 200 vertices with many digits, and the properties of a map, need less.
    private static let largestFile = 1 << 20

    private static func read(_ path: String) throws(ServerError) -> Data {
      guard let file = FileHandle(forReadingAtPath: path) else { throw .file(path, String(cString: strerror(errno))) }
      let content: Data?
      do { content = try file.read(upToCount: largestFile + 1) } catch { throw .file(path, "cannot be read") }
      guard let content else { throw .file(path, "is empty") }
      guard content.count <= largestFile else { throw .file(path, "is larger than 1 MiB") }
      return content
    }
  }

  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Lists them.")
    @OptionGroup var server: ServerOption
    @Flag(help: "Print JSON.") var json = false

    func run() throws {
      let answer = try server.ask("GET", "/zones")
      if json { return print(answer.text) }
      let rows = (answer["zones"]?.array ?? []).map { zone -> JSON in
        [
          "name": zone["name"] ?? .null, "m²": zone["square_metres"] ?? .null,
          "parking": .string(zone["parking"] == true ? "yes" : "-"),
        ]
      }
      printTable(rows, ["name", "parking", "m²"])
    }
  }

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Shows one with its area, in JSON.")
    @OptionGroup var server: ServerOption
    @Argument(help: "Its name.") var name: String
    @Flag(help: "Print JSON, as without it.") var json = false
    func run() throws { print(try server.ask("POST", "/zone", ["name": .string(name)]).text) }
  }

  struct Remove: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Removes one.")
    @OptionGroup var server: ServerOption
    @Argument(help: "Its name.") var name: String

    func run() throws {
      let zone = try server.ask("POST", "/zone/remove", ["name": .string(name)])
      print("\(zone["name"]?.string ?? name): removed")
    }
  }
}

extension Coordinate {
  /// - Parameter text: `48.7758,9.1829`: latitude and longitude in degrees.
  init?(typed text: String) {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { $0.filter { $0 != " " } }
    guard parts.count == 2, let latitude = Double(parts[0]), let longitude = Double(parts[1]) else { return nil }
    self.init(latitude: latitude, longitude: longitude)
  }
}
