import Domain
import NDEF
import Tags

/// The settings for an NTAG 424 DNA, so that each reading of the tag gives another URI.
package struct DynamicTagSetup: Sendable {
  /// The URI, with zeros in place of the tag's own digits.
  package let uri: String
  /// The positions in the URI of the digits for UID and counter, and of those for the MAC.
  let offsets: (encrypted: Int, mac: Int)
  /// Key 0, which permits all other changes.
  let masterKey: [UInt8]
  let metaReadKey: [UInt8]
  let fileReadKey: [UInt8]

  /// - Parameters:
  ///   - encryptedOffset: the offset in the URI, bytes; `macOffset` likewise.
  ///   - masterKey: 16 bytes, like the other keys.
  package init(
    uri: String, encryptedOffset: Int, macOffset: Int, masterKey: [UInt8], metaReadKey: [UInt8],
    fileReadKey: [UInt8]
  ) {
    self.uri = uri
    offsets = (encryptedOffset, macOffset)
    self.masterKey = masterKey
    self.metaReadKey = metaReadKey
    self.fileReadKey = fileReadKey
  }

  var message: NDEFMessage { NDEFMessage([NDEFURI(uri).record]) }

  /// The settings of the tag's file. In the file, the length takes two bytes, and the URI ends the message.
  package var settings: [UInt8] {
    let start = 2 + message.bytes.count - uri.utf8.count
    return DynamicMessageSettings(encryptedOffset: start + offsets.encrypted, macOffset: start + offsets.mac).bytes
  }
}

extension TagWriter {
  /// Sets up an NTAG 424 DNA in its factory state.
  ///
  /// The tag shows at any time what is done and what is not, and the key that permits all changes is changed last. So
  /// if a tag was taken away in the middle, another run with the same keys completes it.
  ///
  /// - Parameters:
  ///   - isRehearsal: whether to write nothing, and only find out what would be done and whether it is possible. The
  ///     keys are checked only then, so a rehearsal comes first.
  ///   - isGenuine: whether the tag makes a given URI with these keys.
  /// - Returns: how many parts of the setup were done, or would be; 0 for a tag that is already set up.
  /// - Throws: also for a tag with other keys, because nobody can change it without those keys.
  package func setUp(
    _ setup: DynamicTagSetup, isRehearsal: Bool = false, isGenuine: (String) -> Bool
  ) throws -> Int {
    guard target.speaksISODEP else { throw Self.isNoDynamicTag }
    // NT4H2421Gx 8.2.1: a random UID has four bytes.
    guard target.uid.bytes.count == 7 else {
      throw NFCError.unsupported("the tag gives a random UID, by which no vehicle can know it")
    }
    var done = 0
    // How often the tag answered all parts without any progress. No answer at all says nothing about its keys.
    var fruitless = 0
    return try persevere { _ in
      while true {
        // A new object each time: reading selects the application, which ends the tag's session.
        let tag = NTAG424Tag(Type4Session(field))
        let contents = try tag.session.read()
        guard try tag.isNTAG424() else { throw Self.isNoDynamicTag }
        let parts = try tag.missing(setup, contents, isGenuine)
        if isRehearsal {
          try tag.check(parts, of: setup)
          return parts.count
        }
        if parts.isEmpty { return done }
        guard fruitless < 3 else { throw Self.hasOtherKeys }
        for (index, part) in parts.enumerated() {
          progress(.written(index, of: parts.count))
          try tag.perform(part, of: setup, contents)
          done += 1
        }
        fruitless += 1
      }
    }
  }

  private static let isNoDynamicTag = NFCError.unsupported(
    "this is no NTAG 424 DNA: other tags have no secure dynamic messages")
  static let hasOtherKeys = NFCError.unsupported(
    "the tag was set up before, for something else or with other keys, which are needed to change it")
}

/// An NTAG 424 DNA while it stays selected.
final class NTAG424Tag {
  /// The parts of the setup for dynamic messages, in this order.
  enum Part: Equatable {
    case message
    case key(UInt8)
    case settings
    /// Changed only after all other parts were verified.
    case masterKey
  }

  let session: Type4Session
  /// Not used again after an error, because the tag's command counter is then unknown.
  private var secured: NTAG424Session?

  init(_ session: Type4Session) { self.session = session }

  /// The version of this program's keys; the factory's keys have 0.
  private static let keyVersion: UInt8 = 1
  private static let factoryKey = [UInt8](repeating: 0, count: 16)

  func isNTAG424() throws -> Bool {
    do {
      let hardware = try plain(.getVersion)
      guard !hardware.isComplete, NTAG424Command.isNTAG424(hardware: hardware.data) else { return false }
      // The data about its software and production is not needed.
      _ = try plain(.more)
      return try plain(.more).isComplete
    } catch is NTAG424Error {
      // Another kind of tag refuses the command, or answers something else.
      return false
    }
  }

  /// Whether an NTAG 424 DNA writes its own digits into its message at each reading; nil for another kind of tag. The
  /// test selects the tag's application; other tags may then forget what was selected.
  func makesDynamicMessages() throws -> Bool? {
    guard try isNTAG424() else { return nil }
    return NTAG424Command.isDynamic(fileSettings: try plain(.getFileSettings(file: DynamicMessageSettings.file)).data)
  }

  /// - Parameter contents: the contents read in this session.
  func missing(
    _ setup: DynamicTagSetup, _ contents: Type4Contents, _ isGenuine: (String) -> Bool
  ) throws -> [Part] {
    let isOurs = try version(of: 0) != 0
    if let uri = Self.uri(contents), isGenuine(uri) { return isOurs ? [] : [.masterKey] }
    // The tag's own key is changed last, so all others were already changed.
    guard !isOurs else { throw TagWriter.hasOtherKeys }
    var parts: [Part] = contents.message == setup.message.bytes ? [] : [.message]
    for key in [DynamicMessageSettings.metaReadKey, DynamicMessageSettings.fileReadKey] {
      if try version(of: key) == 0 { parts.append(.key(key)) }
    }
    return parts + [.settings]
  }

  /// Finds out whether the tag has the keys and the rights that all parts need. The key versions do not tell: other
  /// programs change a key and leave its version at 0.
  func check(_ parts: [Part], of setup: DynamicTagSetup) throws {
    if parts.contains(.settings) {
      let settings = try plain(.getFileSettings(file: DynamicMessageSettings.file)).data
      guard NTAG424Command.isOpenToSetup(fileSettings: settings) else { throw TagWriter.hasOtherKeys }
      for (number, key) in [
        (DynamicMessageSettings.metaReadKey, setup.metaReadKey),
        (DynamicMessageSettings.fileReadKey, setup.fileReadKey),
      ] {
        _ = try authenticate(number, parts.contains(.key(number)) ? Self.factoryKey : key)
      }
    }
    if !parts.isEmpty { _ = try authenticate(0, Self.factoryKey) }
  }

  func perform(_ part: Part, of setup: DynamicTagSetup, _ contents: Type4Contents) throws {
    switch part {
    case .message:
      try session.write(setup.message, to: contents)
    case .key(let number):
      let key = number == DynamicMessageSettings.metaReadKey ? setup.metaReadKey : setup.fileReadKey
      try send(.changeKey(number, to: key, from: Self.factoryKey, version: Self.keyVersion))
    case .settings:
      try send(.changeFileSettings(file: DynamicMessageSettings.file, setup.settings))
    case .masterKey:
      try send(.changeKey(0, to: setup.masterKey, from: nil, version: Self.keyVersion), ends: true)
    }
  }

  /// The URI in the first record.
  private static func uri(_ contents: Type4Contents) -> String? {
    guard let record = try? NDEFMessage(parsing: contents.message).records.first else { return nil }
    return (try? NDEFURI(record))?.uri
  }

  private func version(of key: UInt8) throws -> UInt8 {
    guard let version = try plain(.getKeyVersion(key)).data.first else { throw NTAG424Error.notGenuine }
    return version
  }

  private func plain(_ command: NTAG424Command) throws -> (data: [UInt8], isComplete: Bool) {
    try command.data(of: session.send(command.bytes))
  }

  /// Sends a command that needs the tag's key; the first such command authenticates.
  private func send(_ command: NTAG424Command, ends: Bool = false) throws {
    var secured = try secured ?? authenticate(0, Self.factoryKey)
    let answer = try session.send(secured.sealed(command))
    try secured.check(answer, to: command, ends: ends)
    self.secured = ends ? nil : secured
  }

  private func authenticate(_ number: UInt8, _ key: [UInt8]) throws -> NTAG424Session {
    var generator = SystemRandomNumberGenerator()
    let random = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    var authentication = NTAG424Authentication(key: key, number: number, random: random)
    let proof = try authentication.second(after: session.send(authentication.first))
    return try authentication.session(after: session.send(proof))
  }
}
