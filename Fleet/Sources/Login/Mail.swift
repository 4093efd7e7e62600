import Dispatch
import Foundation
package import Logging
import Synchronization

/// A mail address in lower case, so that one person has one account.
package struct EmailAddress: Hashable, Sendable, CustomStringConvertible {
  package let description: String

  /// Accepts what HTML's `<input type=email>` accepts, in ASCII, with or without a full stop in the domain. None of
  /// these characters is special in a mail's header.
  package init?(_ text: String) {
    let parts = text.split(separator: "@", omittingEmptySubsequences: false)
    guard text.utf8.count <= 254, parts.count == 2, (1...64).contains(parts[0].utf8.count),
      parts[0].utf8.allSatisfy({ Self.isAlphanumeric($0) || ".!#$%&'*+/=?^_`{|}~-".utf8.contains($0) }),
      parts[1].split(separator: ".", omittingEmptySubsequences: false).allSatisfy({ label in
        (1...63).contains(label.utf8.count) && label.utf8.allSatisfy { Self.isAlphanumeric($0) || $0 == 0x2D }
          && label.first != "-" && label.last != "-"
      })
    else { return nil }
    description = text.lowercased()
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
  }
}

/// A message to one person.
package struct Mail: Sendable, Equatable {
  package let to: EmailAddress
  package let subject: String
  package let text: String

  package init(to: EmailAddress, subject: String, text: String) {
    (self.to, self.subject, self.text) = (to, subject, text)
  }
}

/// Sends mail.
package protocol Mailer: Sendable {
  /// Hands over a message and returns at once. Later failures are logged.
  func send(_ mail: Mail)
}

/// Hands mail to `sendmail -t`, which every mail server for Unix has.
///
/// The recipient is in the message, because other users of the machine can see arguments.
package final class Sendmail: Mailer {
  private let program: ProgramQueue
  private let from: EmailAddress

  /// - Parameter program: the path of sendmail.
  package init(program: String, from: EmailAddress, logger: Logger) {
    // -i: a line with a single full stop does not end the message.
    self.program = ProgramQueue(program, ["-t", "-i"], logger: logger)
    self.from = from
  }

  package func send(_ mail: Mail) { program.send(Self.message(mail, from: from)) }

  /// Sends a message, and returns when the program has taken it or has failed.
  package func deliver(_ mail: Mail) async { await program.deliver(Self.message(mail, from: from)) }

  /// Waits until all messages were handed over.
  package func finish() async { await program.finish() }

  /// The message in the form for `sendmail -t`. The header contains only our own text and an address.
  static func message(_ mail: Mail, from: EmailAddress) -> String {
    """
    From: \(from)
    To: \(mail.to)
    Subject: \(mail.subject)
    Auto-Submitted: auto-generated
    MIME-Version: 1.0
    Content-Type: text/plain; charset=utf-8
    Content-Transfer-Encoding: 8bit

    \(mail.text)

    """
  }
}

/// Runs a program for each message, one after the other, with the message as its input.
package final class ProgramQueue: Sendable {
  private let program: String
  private let arguments: [String]
  private let logger: Logger
  private let queue = DispatchQueue(label: "program")
  private let waiting = Mutex(0)

  private static let places = 256
  /// Time limit for the program, seconds.
  private static let patience = 30

  /// - Parameter program: its path.
  package init(_ program: String, _ arguments: [String] = [], logger: Logger) {
    (self.program, self.arguments, self.logger) = (program, arguments, logger)
  }

  /// Hands over a message and returns at once. Failures are logged.
  package func send(_ message: String) {
    let isTaken = waiting.withLock { waiting in
      guard waiting < Self.places else { return false }
      waiting += 1
      return true
    }
    guard isTaken else {
      logger.error("too many messages wait for a program; one was dropped", metadata: ["program": "\(program)"])
      return
    }
    queue.async { [self] in
      defer { waiting.withLock { $0 -= 1 } }
      runProgram(message)
    }
  }

  /// Hands over a message, and returns when the program has taken it or has failed. Failures are logged.
  package func deliver(_ message: String) async {
    await withCheckedContinuation { continuation in
      queue.async { [self] in
        runProgram(message)
        continuation.resume()
      }
    }
  }

  private func runProgram(_ message: String) {
    guard let problem = result(of: message) else { return }
    // Logs nothing of the message: it may contain a code.
    logger.error("a program has not taken a message", metadata: ["program": "\(program)", "problem": "\(problem)"])
  }

  /// Waits until all messages were handed over.
  package func finish() async {
    await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
  }

  /// - Returns: the error; nil on success.
  private func result(of message: String) -> String? {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    let pipe = Pipe()
    process.standardInput = pipe
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    let ended = DispatchSemaphore(value: 0)
    process.terminationHandler = { _ in ended.signal() }
    do {
      try process.run()
      try pipe.fileHandleForWriting.write(contentsOf: Data(message.utf8))
      try pipe.fileHandleForWriting.close()
    } catch {
      if process.isRunning { process.terminate() }
      return access(program, X_OK) == 0 ? "\(error)" : "it cannot be run: \(String(cString: strerror(errno)))"
    }
    guard ended.wait(timeout: .now() + .seconds(Self.patience)) == .success else {
      process.terminate()
      return "it took longer than \(Self.patience) s"
    }
    return process.terminationStatus == 0 ? nil : "it ended with status \(process.terminationStatus)"
  }
}
