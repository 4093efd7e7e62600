import Testing

@testable import NTAG424
@testable import Tags

/// The examples of NXP's AN12196 (Rev. 2.0), by the numbers of its tables.
@Suite("NTAG 424 DNA")
struct NTAG424Tests {
  static let zeros = [UInt8](repeating: 0, count: 16)

  private static func session() throws -> NTAG424Session {
    var authentication = NTAG424Authentication(
      key: zeros, number: 0, random: hex("13C5DB8A5930439FC3DEF9A4C675360F"))
    #expect(authentication.first == hex("9071000002000000"))
    let second = try authentication.second(after: hex("A04C124213C186F22399D33AC2A3021591AF"))
    #expect(second == hex("90AF00002035C3E05A752E0144BAC0DE51C1F22C56B34408A23D8AEA266CAB947EA8E0118D00"))
    return try authentication.session(
      after: hex("3FA64DB5446D1F34CD6EA311167F5E4985B89690C04A05F17FA7AB2F081206639100"))
  }

  @Test("authenticates as table 14 shows")
  func authentication() throws {
    let session = try Self.session()
    #expect(session.encryption == hex("1309C877509E5A215007FF0ED19CA564"))
    #expect(session.authentication == hex("4C6626F5E72EA694202139295C7A7FC7"))
  }

  @Test("changes settings as table 19 shows, and believes the answer by its MAC alone")
  func settings() throws {
    var session = try Self.session()
    // Table 18 comes before, of which only the answer is needed: it raises the counter.
    try session.check(hex("FC222E5F7A5424529100"), to: NTAG424Command("WriteData", 0x8D))
    let command = NTAG424Command.changeFileSettings(file: 2, hex("4000E0C1F121200000430000430000"))
    let sealed = session.sealed(command)
    #expect(sealed == hex("905F0000190261B6D97903566E84C3AE5274467E89EAD799B7C1A0EF7A0400"))
    var forged = session
    #expect(throws: NTAG424Error.notGenuine) {
      try forged.check(hex("57BFF87B1241E93E9100"), to: command)
    }
    try session.check(hex("57BFF87B1241E93D9100"), to: command)
  }

  @Test("a key that is not the tag's is told as such")
  func wrongKey() throws {
    var authentication = NTAG424Authentication(key: Self.zeros, number: 0, random: Self.zeros)
    _ = try authentication.second(after: hex("A04C124213C186F22399D33AC2A3021591AF"))
    #expect(throws: NTAG424Error.wrongKey(0)) { try authentication.session(after: [0x91, 0xAE]) }
  }

  @Test("a tag that does not have the key is not believed")
  func forgedTag() throws {
    var authentication = NTAG424Authentication(key: Self.zeros, number: 0, random: Self.zeros)
    _ = try authentication.second(after: hex("A04C124213C186F22399D33AC2A3021591AF"))
    let answer = [UInt8](repeating: 7, count: 32) + [0x91, 0x00]
    #expect(throws: NTAG424Error.notGenuine) { try authentication.session(after: answer) }
    for malformed in [[], [0x91], [0x90, 0x00], [0x91, 0x00], Self.zeros + [0x91, 0x00]] as [[UInt8]] {
      #expect(throws: NTAG424Error.notGenuine) { try authentication.session(after: malformed) }
    }
  }

  @Test("there is no session without a challenge")
  func order() {
    let authentication = NTAG424Authentication(key: Self.zeros, number: 0, random: Self.zeros)
    let answer = hex("3FA64DB5446D1F34CD6EA311167F5E4985B89690C04A05F17FA7AB2F081206639100")
    #expect(throws: NTAG424Error.notGenuine) { try authentication.session(after: answer) }
  }

  @Test("changes keys as tables 26 and 27 show")
  func keys() throws {
    // The session's key for encryption; two commands, and another authentication, come before.
    var session = NTAG424Session(
      encryption: hex("4CF3CB41A22583A61E89B158D252FC53"), authentication: Self.zeros,
      identifier: hex("7614281A"), counter: 2)
    let other = NTAG424Command.changeKey(
      2, to: hex("F3847D627727ED3BC9C4CC050489B966"), from: Self.zeros, version: 1)
    let cipher = hex("2CF362B7BF4311FF3BE1DAA295E8C68DE09050560D19B9E16C2393AE9CD1FAC7")
    #expect(Array(session.sealed(other)[6..<38]) == cipher)
    #expect(other.data == hex("F3847D627727ED3BC9C4CC050489B96601789DFADC"))
    let own = NTAG424Command.changeKey(0, to: hex("5004BF991F408672B1EF00F08F9E8647"), from: nil, version: 1)
    #expect(own.data == hex("5004BF991F408672B1EF00F08F9E864701"))
    try session.check([0x91, 0x00], to: own, ends: true)
  }

  @Test("asks for the settings of the NDEF file, and knows dynamic messages from them")
  func fileSettings() throws {
    let command = NTAG424Command.getFileSettings(file: 2)
    #expect(command.bytes == hex("90F50000010200"))
    // AN12196, table 11, and the settings from the factory (NT4H2421Gx, rev. 3.0, table 9).
    let dynamic = try command.data(of: hex("0040EEEE000100D1FE001F00004400004400002000006A00009100")).data
    #expect(NTAG424Command.isDynamic(fileSettings: dynamic))
    #expect(!NTAG424Command.isDynamic(fileSettings: try command.data(of: hex("0000E0EE0001009100")).data))
    #expect(!NTAG424Command.isDynamic(fileSettings: []))
  }

  @Test("says of the NDEF file what AN12196 says of its example, but for the keys")
  func dynamicMessages() {
    let settings = DynamicMessageSettings(encryptedOffset: 0x20, macOffset: 0x43)
    #expect(settings.bytes == hex("4000E0C1FF12200000430000430000"))
  }
}
