package import ArgumentParser
package import Configuration
package import Domain
import Glibc
package import HTTP
import Synchronization
package import SystemIO

/// A command's environment: this process, or a test's substitute.
package struct Context: Sendable {
  /// For results.
  package var output: any Output
  /// For everything else.
  package var errors: any Output
  package var input: any Input
  package var environment: [String: String]
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
    output: any Output, errors: any Output, input: any Input, environment: [String: String],
    folders: ConfigurationFolders, clocks: Clocks = .system,
    interruption: @escaping @Sendable () throws(SystemError) -> Interruption
  ) {
    self.output = output
    self.errors = errors
    self.input = input
    self.environment = environment
    self.folders = folders
    self.clocks = clocks
    self.interruption = interruption
  }

  /// The context of this process.
  package static var process: Context {
    let environment = Context.processEnvironment
    return Context(
      output: StandardOutput.results, errors: StandardOutput.messages, input: StandardInput(),
      environment: environment, folders: ConfigurationFolders(environment: environment),
      interruption: { () throws(SystemError) in try Interruption() })
  }

  /// Seconds since 1970, as tokens and certificates count them.
  package var seconds: Int64 { clocks.wall().microseconds / 1_000_000 }

  /// The environment. If a variable is set twice, the first value counts, as with getenv(3).
  private static var processEnvironment: [String: String] {
    var variables: [String: String] = [:]
    var entry = environ
    while let variable = entry.pointee {
      let text = String(cString: variable)
      if let equals = text.firstIndex(of: "=") {
        let name = String(text[..<equals])
        if variables[name] == nil { variables[name] = String(text[text.index(after: equals)...]) }
      }
      entry += 1
    }
    return variables
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
