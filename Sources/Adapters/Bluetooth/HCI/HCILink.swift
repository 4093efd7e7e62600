import SystemIO

/// A way to a controller, closed when it goes.
protocol HCILink: AnyObject {
  /// What the user calls the radio.
  var name: String { get }

  /// Whether the controller is ours alone, so that we have to initialise it. Otherwise the kernel did.
  var needsInitialization: Bool { get }

  /// Readable when an event has arrived: lent to `waitReadable`.
  var descriptor: Int32 { get }

  /// When there was last nothing left to read: what is read now has not waited for longer.
  var emptied: ContinuousClock.Instant { get }

  /// Sends one packet, with its H4 packet type in front.
  func send(_ packet: [UInt8]) throws(RadioError)

  /// Waits for the next event, or for the next command that somebody else who shares the controller has given it;
  /// other packets are passed over.
  ///
  /// - Returns: nil when the deadline passed.
  func receive(
    until deadline: ContinuousClock.Instant?, _ interruption: Interruption?
  ) throws(RadioError) -> HCIPacket?
}

/// What a link to a controller brings, without its H4 packet type.
enum HCIPacket: Hashable, Sendable {
  /// From its event code on (Core 5.4, Vol 4, Part E, 5.4.4).
  case event([UInt8])
  /// From somebody else, from its opcode on (5.4.1).
  case command([UInt8])
}
