import Encoding
import Glibc
package import SystemIO
package import Tags

/// A reader that libnfc knows, in use by nobody else, with a tag before it or not.
///
/// libnfc runs in a process of its own (`stepctl-nfc`), which it sometimes ends. After that, and after whatever else
/// leaves in doubt which command an answer belongs to, the process and the reader are started again: so a page that is
/// read is never the one that was asked for before.
package final class NFCReader: TagField {
  private let connection: ConnectionString
  private let port: Port?
  private let program: String
  private let interruption: Interruption
  private var helper: HelperProcess?
  /// How often the reader was started again since a tag last answered.
  private var disturbances = 0
  private static let mostDisturbances = 3
  /// Between two looks at an empty field.
  private static let pause = Duration.milliseconds(50)
  /// Longer than libnfc waits in any request of ours.
  private static let patience = Duration.seconds(4)
  /// How long it may take to switch off the field.
  private static let farewell = Duration.milliseconds(150)

  /// Sees whether a text can be a connection string of libnfc's.
  package static func check(connection: String) throws(NFCError) { _ = try ConnectionString(connection) }

  /// Opens a reader.
  ///
  /// - Parameters:
  ///   - connection: libnfc's connection string, as `pn532_uart:/dev/ttyUSB0`; nil for the reader that libnfc takes by
  ///     itself, from LIBNFC_DEFAULT_DEVICE, /etc/nfc, or what is plugged in.
  ///   - interruption: ends every wait.
  ///   - program: the path of stepctl-nfc, where it is not beside this program.
  package init(_ connection: String?, interruption: Interruption, program: String? = nil) throws(NFCError) {
    self.interruption = interruption
    // What can be said without libnfc is said before it runs.
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

  /// Switches off the field, if that can be done at once.
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

  package func rest() throws {
    if try waitReadable([interruption.number], until: .now + Self.pause)[0] { throw NFCError.interrupted }
  }

  // MARK: - The helper

  /// Sends a request. After a disturbance the reader is opened again with the next one.
  ///
  /// - Returns: nil after a disturbance.
  /// - Throws: when there were too many of them, or the reader cannot be opened any more.
  private func ask(_ request: NFCRequest) throws(NFCError) -> NFCReply? {
    let failure: NFCError
    do {
      if helper == nil { try open(with: Self.start(program, interruption)) }
      guard let helper else { return nil }
      let reply = try Self.ask(request, with: helper)
      // Of all errors this one alone leaves libnfc and the chip in step.
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
    // libnfc gives a reader a third of a second for an answer, which a busy machine can take all of.
    guard !isRepeated else { throw .cannotOpen(connection: connection.text) }
    try open(with: Self.start(program, interruption), isRepeated: true)
  }

  private static func find(with helper: HelperProcess) throws(NFCError) -> String {
    guard case .found(let connection) = try ask(.find, with: helper) else { throw .noReader }
    return connection
  }

  private static func start(_ program: String, _ interruption: Interruption) throws(NFCError) -> HelperProcess {
    do {
      // Whoever wants to see libnfc's log finds it on standard error; else nothing is there.
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
