import Crypto
package import Domain
import Encoding

/// What a rider asks of a step: a nested JWT (RFC 7519 5.2), signed by the rider's device, then encrypted to the
/// controller, so that a broker learns neither who asks nor what.
package struct Command: Sendable, Equatable {
  /// The largest command that is read, bytes of its compact form.
  package static let maximumSize = 8192
  package static let nonceSize = 16

  package let vehicle: UUID
  package let step: StepID
  package let request: Request
  /// Random; the answer repeats it.
  package let nonce: [UInt8]
  /// The compact form of the rider's token.
  package let token: String

  package enum Request: Sendable, Equatable {
    /// "Tell me your status": moves nothing, and is answered with a challenge.
    case status
    case move(Move)
  }

  package struct Move: Sendable, Equatable {
    package enum Target: String, Sendable, CaseIterable { case open, close }

    package let target: Target
    /// The controller's, from the answer to `status`.
    package let epoch: [UInt8]
    /// Single-use, from the same answer.
    package let challenge: [UInt8]
    /// On the controller's clock, milliseconds: not to be begun at or after it.
    package let deadline: Int64
    package let proof: Proof
    /// When the proof was heard or read, on the controller's clock, milliseconds.
    package let proofTime: Int64

    package init(
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

  package init(
    vehicle: UUID, step: StepID, request: Request, nonce: [UInt8] = randomBytes(nonceSize), token: String
  ) {
    self.vehicle = vehicle
    self.step = step
    self.request = request
    self.nonce = nonce
    self.token = token
  }

  /// Signs and encrypts. Every call gives other bytes, because the encapsulated key is fresh.
  package func sealed(by device: SigningKey, to controller: EncryptionKey) -> SealedCommand {
    let signed = SignedObject.sign(claims, as: .command, by: device)
    return SealedCommand(EncryptedObject.seal(Array(signed.utf8), to: controller))
  }

  private var claims: JSON {
    var members: [JSON.Member] = [
      .init("vehicle", .string(vehicle.description)),
      .init("step", .string(step.description)),
    ]
    switch request {
    case .status:
      members.append(.init("position", .string(Position.unknown.rawValue)))
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
    return .object(members)
  }
}

/// A command as it travels.
package struct SealedCommand: Sendable {
  package let text: String

  init(_ text: String) { self.text = text }

  package var bytes: [UInt8] { Array(text.utf8) }
  /// What an answer names the command by.
  package var digest: CommandDigest { CommandDigest(of: bytes) }
}

/// The SHA-256 of a command's compact form, as it was published.
package struct CommandDigest: Hashable, Sendable {
  package static let size = 32
  package let bytes: [UInt8]

  package init(of command: [UInt8]) { bytes = Array(SHA256.hash(data: command)) }

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  package var text: String { Base64URL.encode(bytes) }
}
