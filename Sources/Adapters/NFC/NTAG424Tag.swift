import Tags

/// An NTAG 424 DNA while it stays selected.
final class NTAG424Tag {
  /// What has to be done for dynamic messages, in this order.
  enum Part: Equatable {
    case message
    case key(UInt8)
    case settings
    /// When all else was found to be right.
    case masterKey
  }

  let session: Type4Session
  private var secured: NTAG424Session?

  init(_ session: Type4Session) { self.session = session }

  /// That of a key of ours; the factory's is 0.
  private static let keyVersion: UInt8 = 1
  private static let factoryKey = [UInt8](repeating: 0, count: 16)

  func isNTAG424() throws(NFCError) -> Bool {
    do throws(NFCError) {
      let hardware = try plain(.getVersion)
      guard !hardware.isComplete, NTAG424Command.isNTAG424(hardware: hardware.data) else { return false }
      // Of its software and of its production nothing is needed.
      _ = try plain(.more)
      return try plain(.more).isComplete
    } catch {
      // A tag of another kind refuses it, or answers something else.
      guard case .dynamicTag = error else { throw error }
      return false
    }
  }

  /// - Parameter contents: what was read in this session.
  func missing(
    _ setup: DynamicTagSetup, _ contents: Type4Contents, _ isGenuine: (String) -> Bool
  ) throws(NFCError) -> [Part] {
    let isOurs = try version(of: 0) != 0
    if let uri = Self.uri(contents), isGenuine(uri) { return isOurs ? [] : [.masterKey] }
    // Whoever changed the tag's own key had finished with the others.
    guard !isOurs else { throw TagWriter.hasOtherKeys }
    var parts: [Part] = contents.message == setup.message.bytes ? [] : [.message]
    for key in [DynamicMessageSettings.metaReadKey, DynamicMessageSettings.fileReadKey] {
      if try version(of: key) == 0 { parts.append(.key(key)) }
    }
    return parts + [.settings]
  }

  func perform(_ part: Part, of setup: DynamicTagSetup, _ contents: Type4Contents) throws(NFCError) {
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

  /// The URI of the first record.
  private static func uri(_ contents: Type4Contents) -> String? {
    guard let record = try? NDEFMessage(parsing: contents.message).records.first else { return nil }
    return (try? NDEFURI(record))?.uri
  }

  private func version(of key: UInt8) throws(NFCError) -> UInt8 {
    guard let version = try plain(.getKeyVersion(key)).data.first else { throw .dynamicTag(.notGenuine) }
    return version
  }

  private func plain(_ command: NTAG424Command) throws(NFCError) -> (data: [UInt8], isComplete: Bool) {
    let answer = try session.send(command.bytes)
    return try Self.rethrowing { () throws(NTAG424Error) in try command.data(of: answer) }
  }

  /// Sends a command that takes the tag's key; the first one authenticates.
  private func send(_ command: NTAG424Command, ends: Bool = false) throws(NFCError) {
    if secured == nil { secured = try authenticate() }
    let answer = try session.send(secured!.sealed(command))
    try Self.rethrowing { () throws(NTAG424Error) in try secured!.check(answer, to: command, ends: ends) }
    if ends { secured = nil }
  }

  private func authenticate() throws(NFCError) -> NTAG424Session {
    var generator = SystemRandomNumberGenerator()
    let random = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    var authentication = NTAG424Authentication(key: Self.factoryKey, number: 0, random: random)
    let challenge = try session.send(authentication.first)
    let proof = try Self.rethrowing { () throws(NTAG424Error) in try authentication.second(after: challenge) }
    let answer = try session.send(proof)
    return try Self.rethrowing { () throws(NTAG424Error) in try authentication.session(after: answer) }
  }

  private static func rethrowing<Value>(
    _ body: () throws(NTAG424Error) -> Value
  ) throws(NFCError) -> Value {
    do throws(NTAG424Error) { return try body() } catch { throw .dynamicTag(error) }
  }
}
