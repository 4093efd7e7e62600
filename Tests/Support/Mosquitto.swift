/// A real broker on a loopback port.
package final class Mosquitto {
  package static let isInstalled = ["mosquitto", "mosquitto_pub", "mosquitto_sub"].allSatisfy(Subprocess.isInstalled)

  package let port: UInt16
  private let configuration: String
  private let environment: [String: String]
  private var process: Subprocess?

  /// - Parameter configuration: the path of a mosquitto.conf(5) whose listener has that port.
  package init(configuration: String, port: UInt16, environment: [String: String] = [:]) throws {
    self.port = port
    self.configuration = configuration
    self.environment = environment
    try start()
  }

  package func start() throws {
    let process = try Subprocess(["mosquitto", "-c", configuration], environment: environment)
    guard process.waits(for: " running\n") else {
      throw Subprocess.Missing(description: "mosquitto does not run: \(process.printed)")
    }
    self.process = process
  }

  /// As a power cut does.
  package func stop() {
    process?.stop()
    process = nil
  }

  package var id: Int32 { process?.id ?? 0 }
  package var log: String { process?.printed ?? "" }
  /// Waits until something is logged, and says whether it was.
  package func waits(for text: String) -> Bool { process?.waits(for: text) ?? false }
  /// How many clients were let in since it started.
  package var clients: Int { log.split(separator: "\n").filter { $0.contains("New client connected") }.count }

  /// Publishes with mosquitto_pub, with QoS 1.
  @discardableResult
  package func publish(_ options: [String], host: String = "127.0.0.1") throws -> Subprocess.Outcome {
    try Subprocess.run(["mosquitto_pub", "-h", host, "-p", String(port), "-q", "1"] + options)
  }

  /// A client that prints `> topic payload` for each message, once it is subscribed to everything.
  package func subscribe(_ options: [String], host: String = "127.0.0.1") throws -> Subprocess {
    // By lines: what goes to a file is otherwise held back in blocks.
    let subscriber = try Subprocess(
      [
        "stdbuf", "-oL", "mosquitto_sub", "-h", host, "-p", String(port), "-q", "1", "-d", "-F", "> %t %p", "-t", "#",
        "-t", "$SYS/#",
      ] + options)
    guard subscriber.waits(for: "Subscribed") else {
      throw Subprocess.Missing(description: "not subscribed: \(subscriber.printed)")
    }
    return subscriber
  }
}

extension Subprocess {
  /// The messages that a subscriber has printed.
  package var messages: Set<String> {
    Set(output.split(separator: "\n").filter { $0.hasPrefix("> ") }.map { String($0.dropFirst(2)) })
  }
}
