import Cryptography
import Domain
import Encoding

/// The controller's reading of a payload on `set_position`. It checks, in this order: form, encryption, the operator's
/// signature on the token, the device's signature on the command, and only then the claims.
///
/// A sender whose signature fails gets no answer. Every later refusal is addressed to a known rider.
public enum ReceivedCommand: Sendable, Equatable {
  /// Not sent by a rider of this vehicle. It gets no answer.
  case unauthenticated(ProtocolError)
  /// From a rider, but not a command as version 1 defines it. The nonce is present if it could be read.
  case malformed(ProtocolError, token: Token, nonce: [UInt8]?)
  /// A rider's command. The caller must still check its vehicle, step, times, challenge and proof. A status request
  /// comes with the key by which the rider's device can call.
  case command(Command, token: Token, call: CallKey?)

  /// The words of `position`: what a command asks for.
  enum Asked: String { case unknown, open, close, stop }

  public init(_ payload: [UInt8], controller: DecryptionKey, operatorKey: VerificationKey) {
    self.init(payload, controller: controller, operatorKeys: [operatorKey])
  }

  /// - Parameter operatorKeys: the operator's keys that are valid at present (`Notice.keys`).
  public init(_ payload: [UInt8], controller: DecryptionKey, operatorKeys: [VerificationKey]) {
    var reader = CommandReader(controller: controller, operatorKeys: operatorKeys)
    // Every token is admitted.
    self = reader.read(payload) { _ in true }!
  }
}

/// Reads commands, and remembers valid tokens, so that the operator's signature on each is checked only once.
public struct CommandReader: Sendable {
  /// How many tokens are remembered. The least recently used one is forgotten first.
  static let remembered = 256

  private let controller: DecryptionKey
  private var operatorKeys: [VerificationKey]
  private let usualHeader: [UInt8]
  /// Keyed by bytes: equal strings can have different bytes.
  private var tokens: [[UInt8]: (token: Token, used: UInt64)] = [:]
  private var count: UInt64 = 0
  private var exporter: HPKE.Exporter?

  /// The key of the answers to the payload that was read last, on a link; nil if it could not be decrypted.
  package var answerKey: AnswerKey? { exporter.map(AnswerKey.init) }

  /// - Parameter operatorKeys: the keys that may sign tokens.
  public init(controller: DecryptionKey, operatorKeys: [VerificationKey]) {
    self.controller = controller
    self.operatorKeys = operatorKeys
    usualHeader = Array(EncryptedObject.header(for: controller.thumbprint).utf8)
  }

  /// Accepts only these keys from now on.
  public mutating func trust(_ operatorKeys: [VerificationKey]) {
    self.operatorKeys = operatorKeys
    tokens = [:]
  }

  /// Finds what is wrong with a payload without decoding or decrypting it. Checks its size, and the form of a compact
  /// JWE with integrated encryption, `header.enc..ciphertext.`. The 32 bytes of `enc` make 43 characters.
  package static func fault(of payload: UnsafeRawBufferPointer) -> ProtocolError? {
    guard payload.count <= Command.maximumSize else { return .malformed("larger than \(Command.maximumSize) bytes") }
    guard payload.reduce(UInt8(0), |) < 0x80 else { return .malformed("not ASCII") }
    let dot = UInt8(ascii: ".")
    guard let first = payload.firstIndex(of: dot), payload.count > first + 46, payload[first + 44] == dot,
      payload[first + 45] == dot, payload[payload.count - 1] == dot
    else { return .malformed("not a compact JWE with integrated encryption") }
    return nil
  }

  /// Reads a payload.
  ///
  /// - Parameter admits: called after the operator's signature on the token is verified, and before the device's
  ///   signature is. Only the device and the operator have ever seen the token in the clear.
  /// - Returns: nil if the token was not admitted.
  public mutating func read(_ payload: [UInt8], admits: (Token) -> Bool) -> ReceivedCommand? {
    let claims: JSON
    let token: Token
    let tokenText: String
    let exporter: HPKE.Exporter
    self.exporter = nil
    do throws(ProtocolError) {
      if let fault = payload.withUnsafeBytes(Self.fault) { throw fault }
      let content: [UInt8]
      (content, exporter) = try EncryptedObject.open(utf8: payload, with: controller, usualHeader: usualHeader)
      self.exporter = exporter
      guard content.allSatisfy({ $0 < 0x80 }) else { throw .malformed("not ASCII") }
      let object = try SignedObject(utf8: content, as: .command)
      guard let text = object.payload["token"]?.string else { throw .malformed("token is missing") }
      tokenText = text
      token = try self.token(text)
      guard admits(token) else { return nil }
      try object.verify(by: token.device)
      claims = object.payload
    } catch {
      return .unauthenticated(error)
    }
    do throws(ProtocolError) {
      let command = try Command(claims: claims, token: tokenText)
      return .command(command, token: token, call: command.request == .status ? CallKey(exporter) : nil)
    } catch {
      let nonce = claims["nonce"]?.string.flatMap { Base64URL.decode($0) }
      return .malformed(error, token: token, nonce: nonce?.count == Command.nonceSize ? nonce : nil)
    }
  }

  private mutating func token(_ text: String) throws(ProtocolError) -> Token {
    count += 1
    let name = Array(text.utf8)
    if let known = tokens[name] {
      tokens[name]?.used = count
      return known.token
    }
    let token = try Token(verifying: text, by: operatorKeys)
    if tokens.count >= Self.remembered, let oldest = tokens.min(by: { $0.value.used < $1.value.used })?.key {
      tokens[oldest] = nil
    }
    tokens[name] = (token, count)
    return token
  }
}

extension Command {
  fileprivate init(claims: JSON, token: String) throws(ProtocolError) {
    var members = try ObjectReader(claims, of: "the command")
    _ = try members.string("token")
    vehicle = try members.uuid("vehicle")
    step = try members.step("step")
    nonce = try members.bytes("nonce", count: Command.nonceSize)
    self.token = token
    switch try members.word("position", ReceivedCommand.Asked.self) {
    case .unknown:
      request = .status
    case .stop:
      request = .stop(epoch: try members.bytes("epoch", count: Statement.epochSize))
    case .open:
      request = .move(try Move(target: .open, &members))
    case .close:
      request = .move(try Move(target: .close, &members))
    }
    let about = members.extensions?["about"]
    guard about == nil || about?.bool != nil else { throw .malformed("about is not true or false") }
    asksAbout = about?.bool == true
    try members.end()
  }
}

extension Command.Move {
  fileprivate init(target: Target, _ members: inout ObjectReader) throws(ProtocolError) {
    self.target = target
    epoch = try members.bytes("epoch", count: Statement.epochSize)
    challenge = try members.bytes("challenge", count: Statement.challengeSize)
    deadline = try members.count("deadline")
    let claim = try members.take("proof", "an object") { $0.object == nil ? nil : $0 }
    (proof, proofTime) = try Proof.read(claim)
  }
}
