import ArgumentParser
import Dispatch
import Domain
import Foundation
import Store
import Terminal

@main
struct Stepfleet: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stepfleet", abstract: "A fleet's server: riders log in, book a vehicle, and open its steps.",
    version: Program.version,
    subcommands: [
      Init.self, Mosquitto.self, RabbitMQ.self, Serve.self, VehicleGroup.self, AccountGroup.self, BookingGroup.self,
      Status.self, History.self, Statistics.self, Support.self, ZoneGroup.self, Revoke.self,
      KeysGroup.self, Backup.self, Restore.self, Check.self,
    ])

  static func main() {
    Program.main(Stepfleet.self, ProgramText(examples: examples, manual: "stepfleet", execute: execute))
  }

  private static func execute(_ command: any ParsableCommand) throws {
    do {
      if let command = command as? any AsyncParsableCommand {
        try wait(for: command)
      } else {
        var command = command
        try command.run()
      }
    } catch let error as StoreError {
      throw CommandFailure(.unavailable, "\(error)")
    }
    // `print` does not say so.
    guard fflush(nil) == 0 else {
      throw CommandFailure(.inputOutput, "cannot write to standard output: \(String(cString: strerror(errno)))")
    }
  }

  private static func wait(for command: any AsyncParsableCommand) throws {
    let run = Run(command)
    Task.detached { await run.run() }
    run.ended.wait()
    try run.result.get()
  }

  /// A command that runs while the main thread waits: one has it before `ended`, and the other after.
  private final class Run: @unchecked Sendable {
    let ended = DispatchSemaphore(value: 0)
    private(set) var result: Result<Void, any Error> = .success(())
    private var command: any AsyncParsableCommand

    init(_ command: any AsyncParsableCommand) { self.command = command }

    func run() async {
      do { try await command.run() } catch { result = .failure(error) }
      ended.signal()
    }
  }

  /// Example command lines and their effects, for a command with its groups.
  private static func examples(_ command: String) -> [(typed: String, does: String)] {
    switch command {
    case "stepfleet":
      [
        ("stepfleet init /srv/fleet --host fleet.example", "make a server's folder"),
        ("stepfleet serve /srv/fleet", "serve riders"),
        ("stepfleet vehicle add Van", "let a vehicle join"),
      ]
    case "stepfleet vehicle":
      [
        ("stepfleet vehicle place Van 48.7758,9.1829", "say where it is"),
        ("stepfleet vehicle suspend Van", "keep everybody from booking it"),
      ]
    case "stepfleet booking cancel": [("stepfleet booking cancel 0f3a12bc", "the id as riders see it")]
    case "stepfleet revoke":
      [
        ("stepfleet revoke --booking 0f3a12bc", "cancel a booking, and take its access back"),
        ("stepfleet revoke --account anna@example.org", "cancel all that somebody has booked"),
      ]
    case "stepfleet history":
      [
        ("stepfleet history --account anna@example.org", "what vehicles did and refused for her"),
        ("stepfleet history --vehicle Van --since 2026-11-30T22:00:00Z", "what one has done since then"),
      ]
    case "stepfleet support":
      [
        ("stepfleet support anna@example.org", "she cannot open"),
        ("stepfleet support b-547EC553F6121C54", "whom a vehicle's log names so"),
      ]
    case "stepfleet mosquitto":
      [
        ("stepfleet mosquitto /srv/fleet", "with the plugin that is installed here"),
        ("stepfleet mosquitto /srv/fleet --plugin none", "for a mosquitto without it"),
      ]
    case "stepfleet rabbitmq":
      [("stepfleet rabbitmq /srv/fleet --nodes 8893,8894,8895", "for a cluster of three")]
    default: []
    }
  }
}

/// Why a command of `stepfleet` failed.
enum ServerError: Failure, Equatable {
  /// An existing folder prevents a new server.
  case inTheWay(String)
  /// The folder does not belong to a server.
  case notFleet(String)
  /// A required file is missing.
  case missing(String)
  case damaged(String, String)
  case file(String, String)
  /// This user may not use the file.
  case denied(String)
  /// The operator's folder has another key than the database.
  case otherOperator(String, key: String, expected: String)
  /// Another server uses the folder.
  case alreadyServed(String)
  case notServed(String)
  /// The server cannot listen at that address and port, for the reason in errno(3), and what chooses another port.
  case cannotListen(String, Int32, choice: String)
  /// The server's own answer to a command.
  case refused(String)
  case usage(String)
  /// The defects that `check` found.
  case defects(Int)

  var description: String {
    switch self {
    case .inTheWay(let path): "\(path) already exists"
    case .notFleet(let path): "\(path) is not the folder of a fleet's server"
    case .missing(let path): "\(path): no such file"
    case .damaged(let path, let reason): "\(path): \(reason)"
    case .file(let path, let reason): "\(path): \(reason)"
    case .denied(let path): "\(path): permission denied"
    case .otherOperator(let path, let key, let expected):
      "\(path) has the operator's key \(key), but the database is of the operator with the key \(expected)"
    case .alreadyServed(let path): "another stepfleet serves \(path)"
    case .notServed(let path): "no stepfleet serves \(path)"
    case .cannotListen(let address, let reason, _): "cannot listen at \(address): \(String(cString: strerror(reason)))"
    case .refused(let reason): reason
    case .usage(let reason): reason
    case .defects(let count): count == 1 ? "1 thing is wrong" : "\(count) things are wrong"
    }
  }

  var hint: String? {
    switch self {
    case .inTheWay: "choose another folder; nothing was changed"
    case .notFleet: "`stepfleet init --host HOST DIR` makes one; --dir or STEPFLEET_DIR says where it is"
    case .denied: "run it as the user of the server"
    case .otherOperator(let path, _, _):
      "copy \(path)/operator from the server that has that key, or give this one a database of its own"
    case .notServed(let path): "start it: `stepfleet serve \(path)`"
    case .alreadyServed: "stop it first, or give this one another --port and a PostgreSQL database"
    case .cannotListen(_, EADDRINUSE, let choice): "another program has this port; \(choice) names another one"
    case .cannotListen(_, EACCES, _): "ports below 1024 are root's; a service gets them by AmbientCapabilities"
    case .cannotListen, .missing, .damaged, .file, .refused, .usage, .defects: nil
    }
  }

  var exitStatus: ExitStatus {
    switch self {
    case .inTheWay, .refused, .defects: .failure
    case .notFleet, .missing: .noInput
    case .damaged: .badData
    case .otherOperator: .configuration
    case .file: .inputOutput
    case .cannotListen(_, EACCES, _), .denied: .noPermission
    case .alreadyServed, .notServed, .cannotListen: .unavailable
    case .usage: .usage
    }
  }
}
