import ArgumentParser
import Foundation
import Operator

struct Mosquitto: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Makes mosquitto the vehicles' broker: writes its configuration.",
    usage: "stepfleet mosquitto [<options>] <dir>",
    discussion: """
      A new server has it already. The configuration is the same for any number of vehicles: a plugin says what a client \
      may do. Your changes to the broker's files are lost.
      """)

  @Argument(help: "The server's folder.")
  var dir: String

  @Option(
    help: ArgumentHelp(
      "Where the plugin is on the broker's computer (default: where it is here); or none, for a list of all vehicles.",
      valueName: "path"))
  var plugin: String?

  func run() throws {
    let folder = ServerFolder(dir)
    var settings = try folder.settings()
    let plugin = try path()
    try folder.place.setBrokerPlugin(plugin)
    if settings.rabbitMQ != nil {
      settings.rabbitMQ = nil
      try folder.write(settings)
    }
    let file = folder.path("operator/mosquitto.conf")
    print(
      """
      \(file): \(plugin.map { "it asks \($0)" } ?? "its list has all vehicles")
      Next: start the broker again, `mosquitto -c \(file)`, and then the server.
      """)
  }

  private func path() throws -> String? {
    switch plugin {
    case "none": return nil
    case let plugin?:
      guard plugin.hasPrefix("/") else { throw ServerError.usage("--plugin: \(plugin) is no absolute path") }
      return plugin
    case nil:
      guard let path = BrokerPlugin.path else {
        throw ServerError.usage(
          "\(BrokerPlugin.name) is not beside stepfleet: say --plugin PATH, or --plugin none for a list of all vehicles"
        )
      }
      return path
    }
  }
}

/// mosquitto's plugin, which says what the vehicles' clients may do (Fleet/Sources/MosquittoPlugin).
enum BrokerPlugin {
  static let name = "mosquitto_stepfleet.so"

  /// Where it is: beside this program, as where both are built, or in ../lib/stepfleet; nil if it is nowhere.
  static var path: String? {
    let folder = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
    return [folder, folder.appending(path: "../lib/stepfleet").standardized].map { $0.appending(path: name).path }
      .first { FileManager.default.fileExists(atPath: $0) }
  }
}
