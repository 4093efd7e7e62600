import Cryptography
import Domain
import Encoding
import StepProtocol

/// Makes challenges, and recognizes them without keeping them.
///
/// A challenge is a number and a code over that number, the device and the step. So no challenge has to be forgotten,
/// however many questions are asked, and whoever asks them.
///
/// Numbers rise. A number is 48 bits: the controller's clock in milliseconds, and 8 bits for the challenges of one
/// millisecond. If more than 256 are made in a millisecond, the numbers run ahead of the clock. The code is an
/// HMAC-SHA-256 by a key of this run, truncated to 80 bits, the least that RFC 2104 5 recommends.
struct ChallengeMaker: Sendable {
  private static let numberSize = 6

  /// The latest number. No challenge has the number 0.
  private(set) var last: Int64 = 0
  private let key = Secret(randomBytes(SHA256.size))

  /// The next number.
  mutating func number(at clock: Int64) -> Int64 {
    last = max(last + 1, clock << 8)
    return last
  }

  /// When a number was made, on the controller's clock, milliseconds.
  static func time(of number: Int64) -> Int64 { number >> 8 }

  /// A new challenge.
  mutating func challenge(for device: VerificationKey, _ step: StepID, at clock: Int64) -> [UInt8] {
    challenge(number(at: clock), for: device, step)
  }

  /// - Returns: nil if the challenge was not made in this run for this device and this step.
  func number(of challenge: [UInt8], for device: VerificationKey, _ step: StepID) -> Int64? {
    let number = Int64(bigEndianBytes: challenge.prefix(Self.numberSize))
    return constantTimeEqual(challenge, self.challenge(number, for: device, step)) ? number : nil
  }

  /// A name for a device and a step, of this run. Nobody else can compute it, so nobody can look for two that are
  /// alike.
  func name(of device: VerificationKey, _ step: StepID) -> UInt64 {
    UInt64(bigEndianBytes: code(0, for: device, step).prefix(8))
  }

  private func challenge(_ number: Int64, for device: VerificationKey, _ step: StepID) -> [UInt8] {
    Array(
      (number.bigEndianBytes.suffix(Self.numberSize) + code(number, for: device, step)).prefix(Statement.challengeSize))
  }

  private func code(_ number: Int64, for device: VerificationKey, _ step: StepID) -> [UInt8] {
    HMAC.code(for: number.bigEndianBytes + device.bytes + Array(step.description.utf8), by: key)
  }
}
