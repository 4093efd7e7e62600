import ArgumentParser
import CommandParts
import Domain
import Encoding
import Rider
import Terminal

struct Zones: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "zones", abstract: "List the operator's zones, and where bookings should end.",
    usage: "stepctl zones <options>")

  @OptionGroup var output: OutputOptions

  func run(in context: Context) throws {
    let console = output.console(context)
    let client = try context.fleet(context.interruption())
    let zones = try client.presentZones()
    if console.isJSON {
      for zone in zones { try console.result(zone.json) }
      return
    }
    let width = min(40, zones.map { printable($0.name).columns }.max() ?? 0)
    for zone in zones {
      let name = printable(zone.name).truncated(to: width, ellipsis: "…").aligned(to: width)
      let kind = (zone.isParking ? "parking" : "-").aligned(to: 7)
      try console.result("\(name)  \(kind)  \(zone.squareMetres) m²")
    }
    if zones.isEmpty { console.note("\(client.server.host) has no zone: a booking may end anywhere") }
  }
}

extension FleetClient {
  /// The zones; an older server has none.
  func presentZones() throws -> [FleetZone] {
    do { return try zones() } catch FleetError.problem(let problem, _) where problem.status == 404 {
      throw CommandFailure(.refused, "\(server.host) has no zones: it runs an older program")
    }
  }
}
