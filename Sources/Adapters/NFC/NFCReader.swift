import Encoding
import Glibc
package import SystemIO
package import Tags

/// A reader that libnfc knows and no other program uses, with or without a tag in its field.
///
/// libnfc runs in a separate process (`stepctl-nfc`), which it sometimes ends. After that, and after any error that
/// leaves in doubt which command an answer belongs to, the process and the reader are restarted. So a page that was
/// read is never the answer to an earlier command.
package final class NFCReader: TagField {
  private let connection: ConnectionString
  private let port: Port?
  private let program: String
  private let interruption: Interruption
  private var helper: HelperProcess?
  /// How many times the reader was restarted since a tag last answered.
  private var disturbances = 0
  private static let mostDisturbances = 3
  /// The pause between two looks at an empty field.
  private static let pause = Duration.milliseconds(50)
  /// Longer than libnfc waits in any request from this program.
  private static let patience = Duration.seconds(4)
  /// The time limit for switching off the field.
  private static let farewell = Duration.milliseconds(150)

  /// Checks whether a text can be a libnfc connection string.
  package static func check(connection: String) throws(NFCError) { _ = try ConnectionString(connection) }

  /// Opens a reader.
  ///
  /// - Parameters:
  ///   - connection: libnfc's connection string, such as `pn532_uart:/dev/ttyUSB0`; nil for libnfc's own choice, from
  ///     LIBNFC_DEFAULT_DEVICE, /etc/nfc, or the connected devices.
  ///   - interruption: ends every wait.
  ///   - program: the path of stepctl-nfc, if it is not beside this program.
  package init(_ connection: String?, interruption: Interruption, program: String? = nil) throws(NFCError) {
    self.interruption = interruption
    // Errors that can be found without libnfc are reported before it runs.
    let named = if let connection { try ConnectionString(connection) } else { nil as ConnectionString? }
    do {
      self.program = if let program { program } else { try ChildProcess.program("stepctl-nfc") }
    } catch {
      throw .program(.system(error))
    }
    let helper = try Self.start(self.program, interruption)
    if let named { self.connection = named } else { self.connection = try ConnectionString(Self.find(with: helper)) }
    if let path = self.connection.path {
      port = try Port(path, isSerial: self.connection.speed != nil)
    } else {
      port = nil
    }
    try open(with: helper)
  }

  /// Switches off the field, if that is possible at once.
  package func close() {
    helper?.end(within: Self.farewell)
    helper = nil
  }

  // MARK: - The field

  package func select() throws(NFCError) -> NFCTarget? {
    while true {
      switch try ask(.select) {
      case .selected(let target): return target
      case .nothing, .failed(NFCReply.transmissionFailed): return nil
      case .failed, nil: continue
      case .found, .opened, .received: throw .program(.malformed)
      }
    }
  }

  package func exchange(_ command: [UInt8], _ framing: NFCRequest.Framing) throws(NFCError) -> TagOutcome {
    switch try ask(.exchange(command: command, framing)) {
    case .received(let answer):
      disturbances = 0
      return .answer(answer)
    case .failed, nil: return .noAnswer
    case .found, .opened, .selected, .nothing: throw .program(.malformed)
    }
  }

  package func restart() throws(NFCError) {
    switch try ask(.restart) {
    // After a disturbance the reader is opened again, which switches off the field as well.
    case .opened, .failed, nil: return
    case .found, .selected, .nothing, .received: throw .program(.malformed)
    }
  }

  package func rest() throws {
    if try waitReadable([interruption.number], until: .now + Self.pause)[0] { throw NFCError.interrupted }
  }

  // MARK: - The helper

  /// Sends a request. After a disturbance the next request opens the reader again.
  ///
  /// - Returns: nil after a disturbance.
  /// - Throws: if there were too many disturbances, or the reader can no longer be opened.
  private func ask(_ request: NFCRequest) throws(NFCError) -> NFCReply? {
    let failure: NFCError
    do {
      if helper == nil { try open(with: Self.start(program, interruption)) }
      guard let helper else { return nil }
      let reply = try Self.ask(request, with: helper)
      // Only this error leaves libnfc and the chip in step.
      guard case .failed(let code) = reply, code != NFCReply.transmissionFailed else { return reply }
      failure = .failed(connection: connection.text, code: code)
    } catch .program(.ended(let ending)) {
      failure = .program(.ended(ending))
    }
    helper = nil
    if port?.isUnplugged == true { throw .unplugged(connection: connection.text) }
    disturbances += 1
    guard disturbances <= Self.mostDisturbances else { throw failure }
    return nil
  }

  private func open(with helper: HelperProcess, isRepeated: Bool = false) throws(NFCError) {
    if case .opened = try Self.ask(.open(connection: connection.text), with: helper) {
      self.helper = helper
      return
    }
    if port?.isUnplugged == true { throw .unplugged(connection: connection.text) }
    if connection.isPN532OnSerialLine, let speed = connection.speed, let reason = port?.diagnosis(speed: speed) {
      throw reason
    }
    // libnfc gives a reader a third of a second to answer. A busy machine can use up all of that.
    guard !isRepeated else { throw .cannotOpen(connection: connection.text) }
    try open(with: Self.start(program, interruption), isRepeated: true)
  }

  private static func find(with helper: HelperProcess) throws(NFCError) -> String {
    guard case .found(let connection) = try ask(.find, with: helper) else { throw .noReader }
    return connection
  }

  private static func start(_ program: String, _ interruption: Interruption) throws(NFCError) -> HelperProcess {
    do {
      // If libnfc's log is enabled, it goes to standard error; otherwise there is no output.
      return try HelperProcess(
        program, isHeard: getenv("LIBNFC_LOG_LEVEL") != nil, longest: NFCReply.longest, interruption: interruption)
    } catch {
      throw .program(error)
    }
  }

  private static func ask(_ request: NFCRequest, with helper: HelperProcess) throws(NFCError) -> NFCReply {
    let body: [UInt8]
    do { body = try helper.ask(request.body, within: patience) } catch {
      throw error == .interrupted ? .interrupted : .program(error)
    }
    do { return try NFCReply(body: body) } catch { throw .program(.malformed) }
  }
}
