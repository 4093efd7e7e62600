import ArgumentParser
import CommandParts
import Domain
import Encoding
import MQTT
import Operator
import StepProtocol
import SystemIO
import Terminal

struct OperatorGroup: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "operator", abstract: TechnicianCommand.operator.abstract,
    subcommands: [
      OperatorInit.self, OperatorTokens.self, OperatorRiders.self, OperatorVehicles.self, OperatorTags.self,
      OperatorLog.self, OperatorRevoke.self, OperatorPublish.self, OperatorRenew.self, OperatorMove.self,
      OperatorKeys.self,
    ])
}

/// Selects the operator's folder.
struct PlaceOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The folder that has operator/: a fleet's, or that of a vehicle, which may be named.", valueName: "dir"),
    completion: .directory)
  var folder: String

  func validate() throws {
    guard !folder.isEmpty else { throw ValidationError("The operator's folder has no name.") }
  }

  /// The operator who is there.
  var place: OperatorPlace {
    get throws { try (VehicleFolder.named(folder, of: "operator") ?? VehicleFolder(folder)).place }
  }
}

/// Selects one item of a list.
struct EntryOptions: ParsableArguments {
  @Argument(help: ArgumentHelp("Show all that is known of this one (default: list all).", valueName: "entry"))
  var entry: String?

  /// The items to show: all, or the named one.
  func chosen<Item>(
    of items: [Item], _ kind: String, in place: PlaceOptions, _ isNamed: (Item, String) -> Bool
  ) throws -> [Item] {
    guard let entry else { return items }
    let found = items.filter { isNamed($0, entry) }
    guard !found.isEmpty else {
      throw CommandFailure(
        .usage, "\(entry): no such \(kind)",
        hint: "`\(shellCommand("stepctl", "operator", "\(kind)s", try place.place.path))` lists them")
    }
    return found
  }
}

/// The address of the broker of several vehicles.
struct BrokerOptions: ParsableArguments {
  @Option(help: "The broker's host name or address, as riders and vehicles reach it.")
  var host: BrokerHost = .localhost

  @Option(help: "The broker's port, 1 to 65535.")
  var port: UInt16 = Broker.standardPort

  var address: BrokerAddress { BrokerAddress(host: host, port: port) }

  func validate() throws {
    guard port > 0 else { throw ValidationError("--port takes 1 to 65535.") }
  }
}

/// Publishes notices to vehicles.
struct PublishOptions: ParsableArguments {
  @OptionGroup var timeout: TimeoutOptions

  /// Gives each notice to its vehicle's broker.
  ///
  /// - Returns: the names of the vehicles whose broker has accepted it.
  /// - Throws: after trying all: why a broker has not accepted a notice, with the names of the vehicles that succeeded
  ///   and failed.
  @discardableResult
  func publish(_ notices: [OperatorPlace.AddressedNotice], _ context: Context, _ console: Console) throws -> [String] {
    let patience = try context.settings(timeout: timeout.typed).patience
    var (told, untold): ([String], [String]) = ([], [])
    var failure: (any Failure)?
    let progress = console.progress
    defer { progress.clear() }
    for (index, notice) in notices.enumerated() {
      progress.show("telling \(printable(notice.vehicle.name)), \(index + 1) of \(notices.count)")
      do {
        try notice.publish(until: .now + patience)
        told.append(notice.vehicle.name)
        console.detail("\(notice.vehicle.name): its broker keeps the notice \(notice.sequence)")
      } catch let error as any Failure {
        progress.clear()
        console.note("\(printable(notice.vehicle.name)) has not been told")
        untold.append(notice.vehicle.name)
        failure = failure ?? error
      }
    }
    guard let failure else { return told }
    throw CommandFailure(
      failure.exitStatus, failure.description, hint: failure.hint,
      details: failure.details + [
        .init("told", .array(told.map { .string($0) })), .init("untold", .array(untold.map { .string($0) })),
      ])
  }
}
