import SystemIO

/// A connection to a controller, closed on `deinit`.
protocol HCILink: AnyObject {
  /// The user's name for the radio.
  var name: String { get }

  /// Whether only this program uses the controller, and so must initialise it. The kernel has initialised a shared one.
  var needsInitialization: Bool { get }

  /// Readable when an event has arrived: lent to `waitReadable`.
  var descriptor: Int32 { get }

  /// When there was last nothing to read: everything that is read now came later.
  var emptied: Instant { get }

  /// Sends one packet, with its H4 packet type in front.
  func send(_ packet: [UInt8]) throws(RadioError)

  /// Waits for the next event, or for the next command from another program that shares the controller. Other packets
  /// are skipped.
  ///
  /// - Returns: nil when the deadline passed.
  func receive(
    until deadline: Instant?, _ interruption: Interruption?
  ) throws(RadioError) -> HCIPacket?
}

/// A packet from a controller, without its H4 packet type.
enum HCIPacket: Hashable, Sendable {
  /// From its event code on (Core 5.4, Vol 4, Part E, 5.4.4).
  case event([UInt8])
  /// Another program's command, from its opcode on (5.4.1).
  case command([UInt8])
}
