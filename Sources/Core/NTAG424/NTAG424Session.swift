import Cryptography
import Encoding
package import Tags

/// Three-pass authentication with an AES key, AuthenticateEV2First (NT4H2421Gx 9.1.5).
package struct NTAG424Authentication: Sendable {
  private let number: UInt8
  private let key: [UInt8]
  /// RndA: 16 bytes that cannot be guessed.
  private let random: [UInt8]
  private var theirs: [UInt8] = []

  package init(key: [UInt8], number: UInt8, random: [UInt8]) {
    precondition(key.count == 16 && random.count == 16)
    self.key = key
    self.number = number
    self.random = random
  }

  /// The first command: the key's number, and no capabilities.
  package var first: [UInt8] { NTAG424Command.wrapped(0x71, [number, 0x00]) }

  /// The second command. It proves that we have the key.
  package mutating func second(after answer: [UInt8]) throws(NTAG424Error) -> [UInt8] {
    let (data, isComplete) = try NTAG424Command("AuthenticateEV2First", 0x71).data(of: answer)
    guard !isComplete, data.count == 16 else { throw .notGenuine }
    theirs = AES128.decrypt(data, key)
    return NTAG424Command.wrapped(0xAF, AES128.encrypt(random + Self.rotated(theirs), key))
  }

  /// The session, if the tag proves that it has the key.
  package func session(after answer: [UInt8]) throws(NTAG424Error) -> NTAG424Session {
    let data: [UInt8]
    do {
      data = try NTAG424Command("AuthenticateEV2First", 0xAF).data(of: answer).data
    } catch {
      // 10.3: AUTHENTICATION_ERROR
      guard case .refused(_, status: 0xAE) = error else { throw error }
      throw .wrongKey(number)
    }
    guard data.count == 32, theirs.count == 16 else { throw .notGenuine }
    // TI, RndA', and the capabilities of both sides.
    let plain = AES128.decrypt(data, key)
    guard constantTimeEqual(Array(plain[4..<20]), Self.rotated(random)) else { throw .notGenuine }
    // 9.1.7: the session vectors SV1 and SV2.
    let mixed = zip(random[2..<8], theirs[0..<6]).map { $0 ^ $1 }
    let context = [0x00, 0x01, 0x00, 0x80] + random[0..<2] + mixed + theirs[6..<16] + random[8..<16]
    return NTAG424Session(
      encryption: AES128.mac([0xA5, 0x5A] + context, key), authentication: AES128.mac([0x5A, 0xA5] + context, key),
      identifier: Array(plain[..<4]))
  }

  private static func rotated(_ bytes: [UInt8]) -> [UInt8] { Array(bytes[1...]) + [bytes[0]] }
}

/// An authenticated session: commands and answers in CommMode.Full (NT4H2421Gx 9.1.8 to 9.1.10).
package struct NTAG424Session: Sendable {
  let encryption: [UInt8]
  let authentication: [UInt8]
  /// TI
  private let identifier: [UInt8]
  /// CmdCtr: the number of commands sent.
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

  /// Checks the answer to the last sealed command. The answer has no data: it only confirms the command.
  ///
  /// - Parameter ends: whether the command ends the session, which changing the session's own key does. Then the answer
  ///   has no MAC to check.
  package mutating func check(
    _ answer: [UInt8], to command: NTAG424Command, ends: Bool = false
  ) throws(NTAG424Error) {
    let (data, isComplete) = try command.data(of: answer)
    guard isComplete else { throw .notGenuine }
    if ends { return }
    counter &+= 1
    guard constantTimeEqual(data, AES128.shortMAC([0x00] + number + identifier, authentication)) else {
      throw .notGenuine
    }
  }

  private var number: [UInt8] { counter.littleEndianBytes }
}
