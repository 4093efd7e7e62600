import Access
import ArgumentParser
import Foundation
import Operator
import StepProtocol
import Store

struct Init: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Makes a server's folder: its keys, certificates, database and the vehicles' broker.",
    usage: "stepfleet init [<options>] --host <host> <dir>")

  @Argument(help: "The folder; it must not exist.")
  var dir: String

  @Option(help: "The host name or IP address by which riders and vehicles reach this machine.")
  var host: String

  @Option(help: "The server's TCP port.")
  var port = 8443

  @Option(help: ArgumentHelp("The TCP port of the vehicles' broker.", valueName: "port"))
  var brokerPort: UInt16 = 8883

  @Option(help: ArgumentHelp("A PostgreSQL database, instead of a file.", valueName: "url"))
  var database: String?

  func run() async throws {
    guard ServerFolder.ports.contains(port) else { throw ServerError.usage("a port is 1 to 65535") }
    guard port != Int(brokerPort) else {
      throw ServerError.usage("--port and --broker-port have to differ: both are \(port)")
    }
    guard !host.contains("/") else {
      throw ServerError.usage("--host is a name or an address without https://, as fleet.example: \(host)")
    }
    let folder = ServerFolder(dir)
    guard !FileManager.default.fileExists(atPath: folder.path) else { throw ServerError.inTheWay(folder.path) }
    try ServerFolder.makeFolder(folder.path, mode: 0o755)
    let settings: ServerFolder.Settings
    do { settings = try await fill(folder) } catch {
      try? FileManager.default.removeItem(atPath: folder.path)
      throw error
    }
    print(
      """
      \(folder.path): a server for riders at \(settings.origin), and an operator
      CA fingerprint (SHA-256): \(try folder.authorityFingerprint())
      operator key: \(try folder.place.keys()[0].thumbprint.grouped)
      Next: change \(folder.path("terms.txt")); start the broker, `mosquitto -c \(folder.path("operator/mosquitto.conf"))`,
      and the server, `stepfleet serve \(folder.path)`; then `stepfleet vehicle add NAME`.
      """)
    if access(settings.sendmail, X_OK) != 0 {
      print(
        "Riders get no codes by mail yet: \(settings.sendmail) is not here; `sendmail` in stepfleet.json names another."
      )
    }
  }

  private func fill(_ folder: ServerFolder) async throws -> ServerFolder.Settings {
    let now = Int64(Date.now.timeIntervalSince1970)
    let place = try FleetOperator.create(
      folder.path("operator"), host: host, port: brokerPort, plugin: BrokerPlugin.path, now: now)
    try ServerFolder.makeFolder(folder.path("tls"), mode: 0o755)
    try ServerFolder.makeFolder(folder.path("run"), mode: 0o700)
    let (certificate, key) = try place.serverCertificate(for: host, now: now)
    try ServerFolder.write(folder.path("tls/server.pem"), certificate + place.authorityPEM(), mode: 0o644)
    try ServerFolder.write(folder.path("tls/server.key"), key, mode: 0o600)
    try ServerFolder.write(
      folder.path("terms.txt"),
      Array("Use a vehicle only while you have booked it, and only if you may drive it.\n".utf8), mode: 0o644)
    let settings = ServerFolder.Settings(
      host: host, port: port, database: database,
      mailFrom: "stepfleet@\(host.contains(":") ? "localhost" : host)", sendmail: "/usr/sbin/sendmail")
    let store = try folder.store(settings, isNew: true)
    try await store.migrate(ServerFolder.migrations)
    await store.close()
    // Written last: this file marks a complete folder.
    try folder.write(settings)
    return settings
  }
}
