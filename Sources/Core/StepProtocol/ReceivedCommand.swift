import Domain
import Encoding

/// What the controller makes of a payload on `set_position`, in the order in which it is checked: form, encryption,
/// the operator's signature on the token, the device's signature on the command, and only then the claims.
///
/// Whoever cannot sign gets no answer, whatever they send; what is refused later is refused to a known rider.
public enum ReceivedCommand {
  /// Nothing that a rider of this vehicle sent: not answered.
  case unauthenticated(ProtocolError)
  /// A rider's, but not a command as version 1 defines it; the nonce is there when it could be read.
  case malformed(ProtocolError, token: Token, nonce: [UInt8]?)
  /// A rider's command. Its vehicle, step, times, challenge and proof are still to be judged.
  case command(Command, token: Token)

  /// The words for what a command asks, its `position`.
  enum Asked: String { case unknown, open, close, stop }

  public init(
    _ payload: [UInt8], controller: DecryptionKey, operatorKey: VerificationKey
  ) {
    let claims: JSON
    let token: Token
    let tokenText: String
    do throws(ProtocolError) {
      guard payload.count <= Command.maximumSize else { throw .malformed("larger than \(Command.maximumSize) bytes") }
      // The compact form is ASCII; anything else ends here, before it costs a decryption.
      guard payload.allSatisfy({ $0 < 0x80 }) else { throw .malformed("not ASCII") }
      let content = try EncryptedObject.open(
        String(decoding: payload, as: UTF8.self), with: controller)
      guard let signed = String(validating: content, as: UTF8.self) else { throw .malformed("not ASCII") }
      let object = try SignedObject(parsing: signed, as: .command)
      guard let text = object.payload["token"]?.string else { throw .malformed("token is missing") }
      tokenText = text
      token = try Token(verifying: text, by: operatorKey)
      try object.verify(by: token.device)
      claims = object.payload
    } catch {
      self = .unauthenticated(error)
      return
    }
    do throws(ProtocolError) {
      self = .command(try Command(claims: claims, token: tokenText), token: token)
    } catch {
      let nonce = claims["nonce"]?.string.flatMap { Base64URL.decode($0) }
      self = .malformed(error, token: token, nonce: nonce?.count == Command.nonceSize ? nonce : nil)
    }
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
