package import Tags
package import Domain
package import SystemIO

/// A reader that libnfc knows, in use by nobody else, with a tag before it or not.
///
/// libnfc runs in a process of its own, which it sometimes ends. That, and whatever else leaves in doubt what the next
/// answer belongs to, is met by starting anew: a page that is read is never one that was asked for before.
package final class NFCReader {
  /// What came of a command to the tag.
  package enum Outcome: Equatable, Sendable {
    case answer([UInt8])
    /// The tag refused the command, or is gone, or the reader was in disorder and is open anew. Whether the command has
    /// reached the tag is not known, and it has to be selected again.
    case noAnswer
  }

  private let connection: ConnectionString
  private let port: Port?
  private let program: String
  private let interruption: Interruption
  private var process: ReaderProcess?
  /// How often it had to start anew since a tag last answered.
  private var disturbances = 0
  private static let mostDisturbances = 3
  /// Between two looks at an empty field.
  private static let pause = Duration.milliseconds(50)

  /// Sees whether a text can be a connection string of libnfc's.
  package static func check(connection: String) throws(NFCError) { _ = try ConnectionString(connection) }

  /// Opens a reader.
  ///
  /// - Parameters:
  ///   - connection: libnfc's connection string, as `pn532_uart:/dev/ttyUSB0`; nil for the reader that libnfc takes by
  ///     itself, from LIBNFC_DEFAULT_DEVICE, /etc/nfc, or what is plugged in.
  ///   - interruption: what ends every wait.
  package init(_ connection: String?, interruption: Interruption) throws(NFCError) {
    self.interruption = interruption
    // What can be said without libnfc is said before it runs.
    let named = if let connection { try ConnectionString(connection) } else { nil as ConnectionString? }
    program = try Self.program()
    let process = try ReaderProcess(program, interruption: interruption)
    if let named { self.connection = named } else { self.connection = try ConnectionString(Self.find(process)) }
    if let path = self.connection.path {
      port = try Port(path, isSerial: self.connection.speed != nil)
    } else {
      port = nil
    }
    try open(with: process)
  }

  /// Switches off the field, if that can be done at once.
  package func close() {
    process?.close()
    process = nil
  }

  // MARK: - Tags

  /// Looks for a tag, once.
  ///
  /// - Returns: nil where there is none, or one that does not make itself known properly.
  package func select() throws(NFCError) -> NFCTarget? {
    while true {
      switch try ask(.select) {
      case .selected(let target): return target
      case .nothing, .failed(NFCReply.transmissionFailed): return nil
      case .failed, nil: continue
      default: throw .unexpected
      }
    }
  }

  /// Waits for a tag.
  ///
  /// - Parameters:
  ///   - deadline: nil for never.
  ///   - progress: is told now and then how much time is left; nil for any.
  /// - Throws: `noTag` at the deadline.
  package func waitForTag(
    until deadline: ContinuousClock.Instant?, progress: (Duration?) -> Void = { _ in }
  ) throws(NFCError) -> NFCTarget {
    while true {
      if let target = try select() { return target }
      let left = deadline.map { ContinuousClock.now.duration(to: $0) }
      if let left, left <= .zero { throw .noTag }
      progress(left)
      try rest()
    }
  }

  /// Waits until no tag is there, or another one than this.
  ///
  /// - Parameter deadline: nil for never.
  /// - Throws: `noTag` at the deadline: no other one came.
  package func waitForRemoval(of uid: TagUID, until deadline: ContinuousClock.Instant?) throws(NFCError) {
    while try select()?.uid == uid {
      if let deadline, deadline <= .now { throw .noTag }
      try rest()
    }
  }

  /// Sends a command to the tag that was selected.
  package func exchange(
    _ command: [UInt8], _ framing: NFCRequest.Framing
  ) throws(NFCError) -> Outcome {
    switch try ask(.exchange(command: command, framing)) {
    case .received(let answer):
      disturbances = 0
      return .answer(answer)
    case .failed, nil: return .noAnswer
    default: throw .unexpected
    }
  }

  /// A moment between two looks at the field, which a signal ends.
  func rest() throws(NFCError) {
    do throws(SystemError) {
      guard try waitReadable([interruption.number], until: .now + Self.pause)[0] else { return }
    } catch {
      throw .system(error)
    }
    throw .interrupted
  }

  // MARK: - The program

  /// Sends a request; after a disturbance the reader is open anew.
  ///
  /// - Returns: nil after a disturbance.
  /// - Throws: when there were too many, or the reader cannot be opened any more.
  private func ask(_ request: NFCRequest) throws(NFCError) -> NFCReply? {
    let failure: NFCError
    do throws(NFCError) {
      if process == nil { try start() }
      guard let reply = try process?.ask(request) else { return nil }
      // Of all errors this one alone leaves libnfc and the chip in step.
      guard case .failed(let code) = reply, code != NFCReply.transmissionFailed else { return reply }
      failure = .failed(connection: connection.text, code: code)
    } catch .programEnded(let ending) {
      failure = .programEnded(ending)
    }
    process = nil
    if port?.isUnplugged == true { throw .unplugged(connection: connection.text) }
    disturbances += 1
    guard disturbances <= Self.mostDisturbances else { throw failure }
    return nil
  }

  private func start(isRepeated: Bool = false) throws(NFCError) {
    try open(with: ReaderProcess(program, interruption: interruption), isRepeated: isRepeated)
  }

  private static func program() throws(NFCError) -> String {
    do throws(SystemError) { return try ChildProcess.program("stepctl-nfc") } catch { throw .system(error) }
  }

  private func open(with process: ReaderProcess, isRepeated: Bool = false) throws(NFCError) {
    if case .opened = try process.ask(.open(connection: connection.text)) {
      self.process = process
      return
    }
    if port?.isUnplugged == true { throw .unplugged(connection: connection.text) }
    if connection.isPN532OnSerialLine, let speed = connection.speed, let reason = port?.diagnosis(speed: speed) {
      throw reason
    }
    // libnfc gives a reader a third of a second for an answer, which a busy machine can take all of.
    guard !isRepeated else { throw .cannotOpen(connection: connection.text) }
    try start(isRepeated: true)
  }

  private static func find(_ process: ReaderProcess) throws(NFCError) -> String {
    guard case .found(let connection) = try process.ask(.find) else { throw .noReader }
    return connection
  }
}
