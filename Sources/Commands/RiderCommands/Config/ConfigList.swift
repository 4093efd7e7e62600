import ArgumentParser
import CommandParts
import Domain
import Encoding
import FileFormats
import Rider
import StepProtocol
import SystemIO
import Terminal
import UserSettings

struct ConfigList: ContextCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the known vehicles, and your access to each.",
    usage: "stepctl config list <options>")

  @OptionGroup var output: OutputOptions

  /// How long the server may take to say what it has.
  private static let patience = Duration.seconds(2)

  func run(in context: Context) throws {
    let console = output.console(context)
    let folders = try context.settings().folders
    let entries = try folders.vehicles().map { entry in
      (name: entry.name, path: entry.path, vehicle: Result { try KnownVehicle(reading: entry.path) })
    }
    let server = try Server(context, entries.compactMap { try? $0.vehicle.get().file.vehicle.uuid })
    let width = entries.map(\.name.columns).max() ?? 0
    for entry in entries {
      let vehicle = try? entry.vehicle.get()
      let isThere = vehicle.flatMap { server?.has($0.file.vehicle.uuid) }
      if console.isJSON {
        try console.result([
          "name": .string(entry.name), "vehicle": vehicle.map { .string($0.file.vehicle.name) } ?? .null,
          "uuid": vehicle.map { .string($0.file.vehicle.uuid.description) } ?? .null,
          "vehicle_file": .string(entry.path), "rider": vehicle?.file.rider.map { .string($0.name) } ?? .null,
          "expires": vehicle?.token.map { .integer($0.expires) } ?? .null,
          "at_server": isThere.map(JSON.bool) ?? .null,
        ])
        continue
      }
      let state: String
      switch entry.vehicle {
      case .success(let vehicle):
        let name = vehicle.file.vehicle.name
        state = (name == entry.name ? "" : "\(name): ") + vehicle.summary(at: context.seconds)
      case .failure(let error): state = "\(error)"
      }
      let gone = isThere == false ? server.map { "; \($0.host) does not have it, or has it no longer" } ?? "" : ""
      try console.result("\(entry.name.aligned(to: width))  \(printable(state + gone))")
    }
    if entries.isEmpty { console.note("you know no vehicle yet; `stepctl config import FILE` adds one") }
  }

  /// Which of the known vehicles the fleet's server has.
  private struct Server {
    let host: String
    private let missing: Set<UUID>

    /// Nil without a login, and if the server does not answer in time.
    init?(_ context: Context, _ known: [UUID]) throws {
      guard !known.isEmpty, let login = try? context.fleetFolder().login(), login.tokens != nil,
        let keys = try? EnrolledDevice(context.folders), !keys.hasLostKey
      else { return nil }
      do {
        let client = try context.fleet(
          context.interruption(), deadline: context.clocks.steady() + ConfigList.patience, noInput: true)
        let listed = Set(try client.vehicles().map(\.id))
        // One that is out of service is not listed.
        missing = Set(try known.filter { try !listed.contains($0) && client.vehicle($0) == nil })
        host = login.server.host
      } catch let error as any Failure where !error.isInterruption {
        return nil
      }
    }

    func has(_ vehicle: UUID) -> Bool { !missing.contains(vehicle) }
  }
}

extension KnownVehicle {
  /// The access, in words for people.
  func summary(at now: Int64) -> String {
    switch access {
    case .none: "no token"
    case .keyLost: "this device's key is lost"
    case .lost(let reason): reason
    case .token(let token): TokenReport(token, at: now).line
    }
  }
}
