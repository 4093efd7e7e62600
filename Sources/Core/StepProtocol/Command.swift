import Cryptography
public import Domain
import Encoding

/// What a rider asks of a step: a nested JWT (RFC 7519 5.2), signed by the rider's device, then encrypted to the
/// controller, so that a broker learns neither who asks nor what.
public struct Command: Sendable, Equatable {
  /// The largest command that is read, bytes of its compact form.
  public static let maximumSize = 8192
  /// Bytes.
  public static let nonceSize = 16
  /// The sizes that claims are padded to, bytes, so that they tell neither the request nor the rider. The second is for
  /// proofs with long texts.
  static let paddedSizes = [2048, 4096]

  public let vehicle: UUID
  public let step: StepID
  public let request: Request
  /// Random; the answer repeats it.
  public let nonce: [UInt8]
  /// The compact form of the rider's token.
  public let token: String
  /// Whether a question also asks what the controller says of itself.
  public let asksAbout: Bool

  /// What is asked.
  public enum Request: Sendable, Equatable {
    /// "Tell me your status": moves nothing, and is answered with a challenge.
    case status
    /// "Hold the step where it is": needs neither a challenge nor a proof, because it starts nothing.
    ///
    /// `epoch` is the controller's, from any statement of its present run.
    case stop(epoch: [UInt8])
    case move(Move)
  }

  /// A motion that is asked for, and what the rider needs for it in addition to the token.
  public struct Move: Sendable, Equatable {
    /// Where the step is to go.
    public enum Target: String, Sendable, CaseIterable { case open, close }

    public let target: Target
    /// The controller's, from the answer to `status`.
    public let epoch: [UInt8]
    /// Single-use, from the same answer.
    public let challenge: [UInt8]
    /// On the controller's clock, milliseconds: not to be begun at or after it.
    public let deadline: Int64
    /// What shows that the rider is at the step.
    public let proof: Proof
    /// When the proof was heard or read, on the controller's clock, milliseconds.
    public let proofTime: Int64

    public init(
      target: Target, epoch: [UInt8], challenge: [UInt8], deadline: Int64, proof: Proof, proofTime: Int64
    ) {
      self.target = target
      self.epoch = epoch
      self.challenge = challenge
      self.deadline = deadline
      self.proof = proof
      self.proofTime = proofTime
    }
  }

  /// - Parameter nonce: random if none is given.
  public init(
    vehicle: UUID, step: StepID, request: Request, nonce: [UInt8]? = nil, token: String, asksAbout: Bool = false
  ) {
    self.vehicle = vehicle
    self.step = step
    self.request = request
    self.nonce = nonce ?? randomBytes(Self.nonceSize)
    self.token = token
    self.asksAbout = asksAbout
  }

  /// Signs and encrypts. Every call gives other bytes, because the encapsulated key is fresh.
  public func sealed(by device: SigningKey, to controller: EncryptionKey) -> SealedCommand {
    let signed = SignedObject.sign(claims, as: .command, by: device)
    let (text, exporter) = EncryptedObject.seal(Array(signed.utf8), to: controller)
    return SealedCommand(text, exporter)
  }

  private var claims: JSON {
    var members: [JSON.Member] = [
      .init("vehicle", .string(vehicle.description)),
      .init("step", .string(step.description)),
    ]
    switch request {
    case .status:
      members.append(.init("position", .string(ReceivedCommand.Asked.unknown.rawValue)))
    case .stop(let epoch):
      members += [
        .init("position", .string(ReceivedCommand.Asked.stop.rawValue)),
        .init("epoch", .string(Base64URL.encode(epoch))),
      ]
    case .move(let move):
      members += [
        .init("position", .string(move.target.rawValue)),
        .init("epoch", .string(Base64URL.encode(move.epoch))),
        .init("challenge", .string(Base64URL.encode(move.challenge))),
        .init("deadline", .integer(move.deadline)),
        .init("proof", move.proof.json(time: move.proofTime)),
      ]
    }
    members += [.init("nonce", .string(Base64URL.encode(nonce))), .init("token", .string(token))]
    if asksAbout { members.append(.init("ext", ["about": true])) }
    return .object(members)
  }
}

/// A command as it travels.
public struct SealedCommand: Sendable {
  /// The compact form, ASCII.
  public let text: String
  private let exporter: HPKE.Exporter

  init(_ text: String, _ exporter: HPKE.Exporter) {
    self.text = text
    self.exporter = exporter
  }

  /// What is published.
  public var bytes: [UInt8] { Array(text.utf8) }
  /// What an answer names the command by.
  public var digest: CommandDigest { CommandDigest(of: bytes) }
  /// By which the device can call that sent it. Only the controller can compute it too.
  public var callKey: CallKey { CallKey(exporter) }
}

/// The SHA-256 of a command's compact form, as it was published.
public struct CommandDigest: Hashable, Sendable {
  /// Bytes.
  public static let size = 32
  /// `size` bytes.
  public let bytes: [UInt8]

  /// - Parameter command: the payload as it was published.
  public init(of command: [UInt8]) { bytes = SHA256.digest(of: command) }

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Base64url.
  public var text: String { Base64URL.encode(bytes) }
}
