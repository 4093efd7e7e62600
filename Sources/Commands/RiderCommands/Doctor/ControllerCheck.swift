import Domain
import Glibc
import SystemIO
import Terminal

/// What `stepd --check` finds, where this computer is the vehicle's controller: its files, servos, inputs and radios.
enum ControllerCheck {
  /// How long it may take.
  private static let patience = Duration.seconds(5)
  /// The most that is read of what it says, bytes.
  private static let longest = 1 << 16
  private static let subject = "hardware"

  /// Adds the findings. There are none where stepd or its configuration is missing, or may not be read.
  ///
  /// - Parameter vehicle: the path of the vehicle file. The configuration lies beside it.
  /// - Throws: only interruptions.
  static func examine(_ vehicle: String, _ part: inout Examination, _ interruption: Interruption) throws {
    let configuration = "\(Files.parent(of: vehicle))/stepd.toml"
    guard access(configuration, R_OK) == 0, let program = try? ChildProcess.program("stepd") else { return }
    do {
      guard let (said, status) = try run(program, configuration, interruption) else {
        return part.find(subject, .warning, "`stepd --check` does not end")
      }
      report(said, status, configuration, &part)
    } catch let error as SystemError {
      part.find(subject, error)
    }
  }

  /// - Returns: its lines and its status; nil if it does not end in time.
  private static func run(
    _ program: String, _ configuration: String, _ interruption: Interruption
  ) throws -> (lines: [String], status: ExitStatus)? {
    // It says what it finds on standard error.
    var child = try ChildProcess(program, arguments: ["--check", "--config", configuration], errors: .output)
    let (number, deadline) = (child.output.number, Instant.now + patience)
    var text: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while text.count < longest {
      let ready = try waitReadable([number, interruption.number], until: deadline)
      if ready[1] { throw Interrupted() }
      guard ready[0] else { return nil }
      let count = try check("read from", program) { read(number, &chunk, chunk.count) }
      if count == 0 { break }
      text += chunk[..<count]
    }
    let status: ExitStatus =
      switch child.wait(within: .seconds(1)) {
      case .exited(let code): ExitStatus(rawValue: code) ?? .failure
      case .signaled: .failure
      }
    let lines = text.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
    return (lines.map { $0.without("stepd: ") ?? $0 }, status)
  }

  private static func report(
    _ lines: [String], _ status: ExitStatus, _ configuration: String, _ part: inout Examination
  ) {
    // The service has rights that this user may lack.
    let isForbidden = status == .noPermission
    if status != .done, !isForbidden, part.state != .broken { part.exitStatus = status }
    for line in lines {
      if let text = line.without("error: ") {
        isForbidden
          ? part.find(
            subject, .warning, text, shellCommand("sudo", "stepd", "--check", "--config", configuration))
          : part.find(subject, .broken, text)
      } else if let text = line.without("warning: ") ?? line.without("hint: ") {
        part.find(subject, .warning, text)
      } else {
        part.find(subject, .good, line)
      }
    }
    if status == .done {
      if lines.isEmpty { part.find(subject, .good, "`stepd --check` finds nothing wrong") }
    } else if !isForbidden, part.state != .broken {
      part.find(subject, .broken, "`stepd --check` ended without an error that it names")
    }
  }
}

extension String {
  /// The rest after this beginning; nil if it has another one.
  fileprivate func without(_ beginning: String) -> String? {
    hasPrefix(beginning) ? String(dropFirst(beginning.count)) : nil
  }
}
