import Cryptography
public import Domain
import Encoding

/// A rider's request to a step: a nested JWT (RFC 7519 5.2). The rider's device signs it and then encrypts it to the
/// controller, so that a broker learns neither the sender nor the request.
public struct Command: Sendable, Equatable {
  /// The largest command that is accepted, bytes of its compact form.
  public static let maximumSize = 8192
  /// In bytes.
  public static let nonceSize = 16
  /// Claims are padded to one of these sizes, in bytes, so that the size reveals neither the request nor the rider. The
  /// second size is for proofs with long texts.
  static let paddedSizes = [2048, 4096]

  public let vehicle: UUID
  public let step: StepID
  public let request: Request
  /// Random; the answer repeats it.
  public let nonce: [UInt8]
  /// The compact form of the rider's token.
  public let token: String
  /// Whether a status request also asks for the controller's description of itself (`About`).
  public let asksAbout: Bool

  /// What the rider asks for.
  public enum Request: Sendable, Equatable {
    /// "Tell me your status": moves nothing, and is answered with a challenge.
    case status
    /// "Hold the step where it is": needs neither a challenge nor a proof, because it starts nothing.
    ///
    /// `epoch` is the controller's, from any statement since its last start.
    case stop(epoch: [UInt8])
    case move(Move)
  }

  /// A motion that the rider asks for, and what it requires in addition to the token.
  public struct Move: Sendable, Equatable {
    /// The position that the rider asks for.
    public enum Target: String, Sendable, CaseIterable { case open, close }

    public let target: Target
    /// The controller's epoch, from the answer to `status`.
    public let epoch: [UInt8]
    /// Single-use, from the same answer.
    public let challenge: [UInt8]
    /// On the controller's clock, milliseconds: the motion must begin before this time.
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

  /// Signs and encrypts. Each call returns different bytes, because the encapsulated key is fresh.
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

/// A command in the form in which it is sent.
public struct SealedCommand: Sendable {
  /// The compact form, ASCII.
  public let text: String
  private let exporter: HPKE.Exporter

  init(_ text: String, _ exporter: HPKE.Exporter) {
    self.text = text
    self.exporter = exporter
  }

  /// The payload to publish.
  public var bytes: [UInt8] { Array(text.utf8) }
  /// The digest by which an answer names the command.
  public var digest: CommandDigest { CommandDigest(of: bytes) }
  /// The key with which the device that sent the command can call. Only the controller can compute it as well.
  public var callKey: CallKey { CallKey(exporter) }
  /// The command as a frame on a link carries it.
  package func brief(for controller: EncryptionKey) -> [UInt8]? {
    EncryptedObject.brief(bytes, for: controller.thumbprint)
  }
  /// The key of the answers on a link.
  public var answerKey: AnswerKey { AnswerKey(exporter) }
}

/// The SHA-256 of a command's compact form, as it was published.
public struct CommandDigest: Hashable, Sendable {
  /// In bytes.
  public static let size = 32
  /// `size` bytes.
  public let bytes: [UInt8]

  /// - Parameter command: the payload as it was published.
  public init(of command: [UInt8]) { bytes = SHA256.digest(of: command) }

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Base64url.
  public var text: String { Base64URL.encode(bytes) }
}
