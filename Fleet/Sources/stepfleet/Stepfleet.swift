import ArgumentParser
import CBuild
import Domain
import Foundation
import Store
import SystemIO

@main
struct Stepfleet: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stepfleet", abstract: "A fleet's server: riders log in, book a vehicle, and open its steps.",
    version: version,
    subcommands: [
      Init.self, RabbitMQ.self, Serve.self, VehicleGroup.self, AccountGroup.self, BookingGroup.self, Revoke.self,
      KeysGroup.self,
      Backup.self, Restore.self, Check.self,
    ])

  /// The version, the commit and the processor of the build, one line each.
  private static var version: String {
    let commit = cbuild_commit().map { ["commit \(String(cString: $0))"] } ?? []
    let architecture = "architecture \(String(cString: cbuild_architecture()))"
    return ([STEPCTL_VERSION] + commit + [architecture]).joined(separator: "\n")
  }

  static func main() async {
    do {
      var command = try parseAsRoot(ProgramArguments.typed)
      if var command = command as? any AsyncParsableCommand { try await command.run() } else { try command.run() }
    } catch let error as any Failure {
      complain("\(error)", hint: error.hint)
      Foundation.exit(error.exitStatus.rawValue)
    } catch let error as StoreError {
      complain("\(error)", hint: nil)
      Foundation.exit(ExitStatus.unavailable.rawValue)
    } catch {
      exit(withError: error)
    }
  }

  static func complain(_ line: String, hint: String?) {
    var text = "stepfleet: error: \(line)\n"
    if let hint { text += "hint: \(hint)\n" }
    FileHandle.standardError.write(Data(text.utf8))
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
    case .notFleet: "`stepfleet init DIR` makes one; --dir or STEPFLEET_DIR says where it is"
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
    case .cannotListen(_, EACCES, _): .noPermission
    case .alreadyServed, .notServed, .cannotListen: .unavailable
    case .usage: .usage
    }
  }
}
