import Cryptography
public import Domain
package import Encoding

/// A message on a link, the direct connection between a rider's device and a vehicle (PROTOCOL.md, section 2.2).
///
/// On the link a frame follows its length, as in `Frames`.
package struct LinkFrame: Sendable, Equatable {
  package enum Kind: UInt8, Sendable {
    /// From a rider: a command for a step, without what is the same in every command for the vehicle.
    case command = 1
    /// From the vehicle: a status, sealed to the device that asked.
    case answer = 2
    /// From a rider: the operator's notice. It names no step.
    case notice = 3
  }

  /// The longest frame, bytes without its length.
  package static let longest = 8702

  package let kind: Kind
  /// Nil in a notice, and in no other frame.
  package let step: StepID?
  package let payload: [UInt8]

  package init(_ kind: Kind, of step: StepID?, _ payload: [UInt8]) {
    precondition((step == nil) == (kind == .notice), "a notice alone names no step")
    (self.kind, self.step, self.payload) = (kind, step, payload)
  }

  /// Reads a frame.
  ///
  /// - Returns: nil for a kind of a later version.
  package init?(_ frame: [UInt8]) throws(MalformedMessage) {
    guard let first = frame.first else { throw MalformedMessage() }
    guard let kind = Kind(rawValue: first) else { return nil }
    guard frame.count >= 2, frame.count >= 2 + Int(frame[1]) else { throw MalformedMessage() }
    let name = frame[2..<2 + Int(frame[1])]
    (self.kind, payload) = (kind, Array(frame[name.endIndex...]))
    if kind == .notice {
      guard name.isEmpty else { throw MalformedMessage() }
      step = nil
    } else {
      guard let id = String(validating: name, as: UTF8.self).flatMap({ StepID($0) }) else { throw MalformedMessage() }
      step = id
    }
  }

  /// The frame, after its length.
  package var bytes: [UInt8] {
    let name = Array((step?.description ?? "").utf8)
    return Frames.frame([kind.rawValue, UInt8(name.count)] + name + payload)
  }
}

/// The key by which the answers to one command are sealed on a link. It is a secret of the vehicle and of the device
/// that sent the command, exported from the command's HPKE context (RFC 9180 5.3).
public struct AnswerKey: Sendable, Equatable {
  private static let exporterContext = Array("stepctl answer".utf8)
  private static let saltSize = 16
  /// Answers are padded to a multiple of this size, in bytes, so that the size does not tell what they say.
  private static let paddedSize = 1024
  private let key: Secret

  init(_ exporter: HPKE.Exporter) { key = exporter.export(Self.exporterContext, count: SHA256.size) }

  /// Seals a status. Each call has a salt and so a key of its own: a restarted vehicle answers a repeated question
  /// again, and must not use a key for two texts.
  public func seal(_ status: [UInt8]) -> [UInt8] {
    let salt = randomBytes(Self.saltSize)
    let filling = (Self.paddedSize - status.count % Self.paddedSize) % Self.paddedSize
    return salt
      + ChaCha20Poly1305.seal(
        status + [UInt8](repeating: 0x20, count: filling), key: key(salt), nonce: Self.nonce, additional: [])
  }

  /// - Returns: nil if it does not answer the command.
  public func open(_ sealed: [UInt8]) -> [UInt8]? {
    guard sealed.count >= Self.saltSize else { return nil }
    return ChaCha20Poly1305.open(
      Array(sealed.dropFirst(Self.saltSize)), key: key(Array(sealed.prefix(Self.saltSize))), nonce: Self.nonce,
      additional: [])
  }

  private static let nonce = Secret([UInt8](repeating: 0, count: ChaCha20Poly1305.nonceSize))

  private func key(_ salt: [UInt8]) -> Secret { Secret(HMAC.code(for: salt, by: key)) }
}

/// How a vehicle can be found: the service UUID of its connectable advertisement, which changes every quarter of an
/// hour. Whoever does not know the vehicle's encryption key cannot tell it from a random one.
public enum LinkName {
  /// Seconds.
  public static let period: Int64 = 900

  /// - Parameter time: Unix time.
  public static func at(_ time: Int64, of vehicle: EncryptionKey) -> UUID { name(time / period, vehicle) }

  /// The names that count at a time: clocks differ by a period at the most.
  ///
  /// - Parameter time: Unix time.
  public static func accepted(at time: Int64, of vehicle: EncryptionKey) -> [UUID] {
    (-1...1).map { name(time / period + $0, vehicle) }
  }

  private static func name(_ number: Int64, _ vehicle: EncryptionKey) -> UUID {
    let code = HMAC.code(
      for: Array("stepctl link".utf8) + [0] + max(0, number).bigEndianBytes, by: Secret(vehicle.bytes))
    return .version4(high: UInt64(bigEndianBytes: code[..<8]), low: UInt64(bigEndianBytes: code[8..<16]))
  }
}
