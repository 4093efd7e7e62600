/// What a link to a controller brings, without its H4 packet type.
enum HCIPacket: Hashable, Sendable {
  /// From its event code on (Core 5.4, Vol 4, Part E, 5.4.4).
  case event([UInt8])
  /// From somebody else, from its opcode on (5.4.1).
  case command([UInt8])
}
