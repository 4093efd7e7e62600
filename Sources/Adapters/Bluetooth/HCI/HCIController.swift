import Encoding
import SystemIO

/// A controller as its host sees it: one command at a time, each with its answer, and events in between.
///
/// libbluetooth's `hci_send_req` gives up after ten other events. During a scan they arrive within milliseconds. It
/// also works only on the kernel's sockets.
final class HCIController {
  private let link: any HCILink
  /// How many commands the controller accepts now (Core 5.4, Vol 4, Part E, 4.4). The first is always allowed.
  private var credits: UInt8 = 1

  /// Whether it scans and reports every frame, according to the last command from any program.
  private(set) var isScanning = false
  /// When another program last sent a command that affects the scan.
  private(set) var lastInterference = Instant.now

  /// Is shown every event, also one that comes while a command waits for its answer.
  var observe: (_ event: [UInt8]) -> Void = { _ in }

  init(_ link: any HCILink) { self.link = link }

  var name: String { link.name }
  var needsInitialization: Bool { link.needsInitialization }
  var descriptor: Int32 { link.descriptor }
  var emptied: Instant { link.emptied }

  /// Sends a command and waits for its Command Complete event. Other events in between are dropped.
  ///
  /// - Parameters:
  ///   - timeout: the kernel allows a controller 2 s; a busy machine at the other end of a network needs more.
  ///   - endsLater: whether a Command Status is the answer, and an event tells the end (4.3): nothing is returned.
  /// - Returns: the return parameters that follow the status.
  @discardableResult
  func request(
    _ command: HCICommand, timeout: Duration = .seconds(5), endsLater: Bool = false, _ interruption: Interruption?
  ) throws(RadioError) -> ArraySlice<UInt8> {
    let deadline = Instant.now + timeout
    var isSent = false
    while true {
      if !isSent, credits > 0 {
        try link.send(command.packet)
        credits -= 1
        isSent = true
      }
      guard let packet = try receive(until: deadline, interruption) else {
        throw .noAnswer(radio: name, command: command.name)
      }
      guard isSent, case .event(let event) = packet, let (opcode, status, rest) = Self.answer(event),
        opcode == command.opcode
      else {
        // Other events may keep coming.
        if deadline <= .now { throw .noAnswer(radio: name, command: command.name) }
        continue
      }
      guard status == 0 else { throw .refused(radio: name, command: command.name, status: status) }
      isScanning = command.scan ?? isScanning
      // After a Command Status of 0 the answer still follows.
      if let rest { return rest }
      if endsLater { return [] }
    }
  }

  /// Waits for the next event, or for another program's command.
  ///
  /// - Returns: nil when the deadline passed.
  func receive(
    until deadline: Instant?, _ interruption: Interruption?
  ) throws(RadioError) -> HCIPacket? {
    let packet = try link.receive(until: deadline, interruption)
    switch packet {
    case .event(let event):
      try note(event)
      observe(event)
    case .command(let command):
      if let scan = HCICommand.scan(after: command[...]) {
        isScanning = scan
        lastInterference = .now
      }
    case nil: break
    }
    return packet
  }

  private func note(_ event: [UInt8]) throws(RadioError) {
    switch event.first {
    case 0x0E where event.count >= 5: credits = event[2]
    case 0x0F where event.count >= 6: credits = event[3]
    case 0x10:
      // 7.7.16: the controller has stopped its operation.
      throw .lost(radio: name, reason: "the controller reports a hardware error")
    default: break
    }
  }

  /// Reads Command Complete (7.7.14) and Command Status (7.7.15), which has no return parameters.
  private static func answer(_ event: [UInt8]) -> (opcode: UInt16, status: UInt8, parameters: ArraySlice<UInt8>?)? {
    switch event.first {
    case 0x0E where event.count >= 6: (UInt16(littleEndianBytes: event[3...4]), event[5], event[6...])
    case 0x0F where event.count >= 6: (UInt16(littleEndianBytes: event[4...5]), event[2], nil)
    default: nil
    }
  }
}
