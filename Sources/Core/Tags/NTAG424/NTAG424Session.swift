/// An authenticated session: commands and answers in CommMode.Full (NT4H2421Gx 9.1.8 to 9.1.10).
package struct NTAG424Session: Sendable {
  let encryption: [UInt8]
  let authentication: [UInt8]
  /// TI
  private let identifier: [UInt8]
  /// CmdCtr: how many commands were sent.
  private var counter: UInt16

  init(encryption: [UInt8], authentication: [UInt8], identifier: [UInt8], counter: UInt16 = 0) {
    self.encryption = encryption
    self.authentication = authentication
    self.identifier = identifier
    self.counter = counter
  }

  /// The C-APDU of a command, encrypted and with a MAC.
  package func sealed(_ command: NTAG424Command) -> [UInt8] {
    // ISO/IEC 9797-1, padding method 2.
    var padded = command.data + [0x80]
    while padded.count % AES128.blockSize != 0 { padded.append(0x00) }
    let initial = AES128.encrypt([0xA5, 0x5A] + identifier + number + [UInt8](repeating: 0, count: 8), encryption)
    let cipher = AES128.encrypt(padded, encryption, initial: initial)
    let mac = AES128.shortMAC([command.code] + number + identifier + command.header + cipher, authentication)
    return NTAG424Command.wrapped(command.code, command.header + cipher + mac)
  }

  /// Checks the answer to the command that was sealed last, which says no more than that it was obeyed.
  ///
  /// - Parameter ends: whether the command ends the session, as the change of the key that opened it does: then there
  ///   is nothing left that could be checked.
  package mutating func check(
    _ answer: [UInt8], to command: NTAG424Command, ends: Bool = false
  ) throws(NTAG424Error) {
    let (data, isComplete) = try command.data(of: answer)
    guard isComplete else { throw .notGenuine }
    if ends { return }
    counter &+= 1
    guard data == AES128.shortMAC([0x00] + number + identifier, authentication) else { throw .notGenuine }
  }

  private var number: [UInt8] { [UInt8(counter & 0xFF), UInt8(counter >> 8)] }
}
