package import ArgumentParser
package import Domain
package import HTTP
import Synchronization
package import SystemIO
package import Terminal
package import UserSettings

/// A command's environment: this process, or a test's substitute.
package struct Context: Sendable {
  package var streams: StandardStreams
  package var folders: ConfigurationFolders
  package var clocks: Clocks
  /// Keeps answers, so that nobody is asked twice in a run.
  package let passphrase = Remembered()
  /// Makes the object that ends a command's waiting. A command makes it once, before it starts a thread.
  package var interruption: @Sendable () throws(SystemError) -> Interruption
  /// Makes the transport for requests to a server. It trusts only these authorities, PEM; nil for the system's.
  package var transport: Transports = { authorities, interruption throws(HTTPError) in
    try CurlTransport(authorities: authorities, agent: "stepctl/\(Program.version)", interruption)
  }

  package typealias Transports =
    @Sendable (_ authorities: [UInt8]?, Interruption?) throws(HTTPError) -> any HTTPTransport

  /// A passphrase that the user has entered.
  package final class Remembered: Sendable {
    private let kept = Mutex<[UInt8]?>(nil)

    package var bytes: [UInt8]? { kept.withLock { $0 } }
    package func keep(_ bytes: [UInt8]?) { kept.withLock { $0 = bytes } }
  }

  package struct Clocks: Sendable {
    /// The time of day and date. It can be set back.
    package var wall: @Sendable () -> UnixTime
    /// A clock that never jumps.
    package var steady: @Sendable () -> Instant

    package init(
      wall: @escaping @Sendable () -> UnixTime, steady: @escaping @Sendable () -> Instant
    ) {
      self.wall = wall
      self.steady = steady
    }

    package static let system = Clocks(
      wall: { UnixTime(microseconds: WallClock.microseconds) }, steady: { Instant.now })
  }

  package init(
    streams: StandardStreams, folders: ConfigurationFolders, clocks: Clocks = .system,
    interruption: @escaping @Sendable () throws(SystemError) -> Interruption
  ) {
    self.streams = streams
    self.folders = folders
    self.clocks = clocks
    self.interruption = interruption
  }

  /// The context of this process.
  package static var process: Context {
    let streams = StandardStreams.process
    return Context(
      streams: streams, folders: ConfigurationFolders(environment: streams.environment),
      interruption: { () throws(SystemError) in try Interruption() })
  }

  /// Seconds since 1970, as tokens and certificates count them.
  package var seconds: Int64 { clocks.wall().microseconds / 1_000_000 }
}

extension Context {
  /// For results.
  package var output: any Output { streams.output }
  /// For everything else.
  package var errors: any Output { streams.errors }
  package var input: any Input { streams.input }
  package var environment: [String: String] { streams.environment }
}

extension Context {
  /// All of standard input.
  ///
  /// - Parameter limit: bytes. More is read no further.
  package func typed(atMost limit: Int) throws -> String {
    let interruption = try interruption()
    var bytes: [UInt8] = []
    while bytes.count <= limit {
      let more = try input.read(until: interruption)
      if more.isEmpty { break }
      bytes += more
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension Console {
  package init(
    _ context: Context, isJSON: Bool = false, isQuiet: Bool = false, verbosity: Int = 0, isColored: Bool = false
  ) {
    self.init(context.streams, isJSON: isJSON, isQuiet: isQuiet, verbosity: verbosity, isColored: isColored)
  }
}

/// A command that uses only its context, so that a test can run it in process.
package protocol ContextCommand: ParsableCommand {
  /// Parses, acts and renders.
  func run(in context: Context) throws
}

extension ContextCommand {
  package func run() throws { try run(in: .process) }
}

extension Context {
  /// Runs a command that was read.
  package func execute(_ command: any ParsableCommand) throws {
    if let command = command as? any ContextCommand { return try command.run(in: self) }
    // A group: it shows its help.
    var group = command
    try group.run()
  }
}
