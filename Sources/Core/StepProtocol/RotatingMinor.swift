import Cryptography
public import Domain
import Encoding

/// The `minor` of a step's iBeacon, if it changes with time so that a recorded frame goes stale.
///
/// It is the first two bytes of an HMAC-SHA-256 over a label, the step's id and the number of the period. This is TOTP
/// (RFC 6238) without the decimal digits. Only the beacon and the controller know the secret.
public struct RotatingMinor: Sendable {
  /// How long a minor can last, seconds.
  public static let periods = 1...3600
  /// Seconds, unless configured otherwise.
  public static let standardPeriod = 8

  /// Seconds.
  public let period: Int
  private let step: StepID
  private let key: Secret

  /// - Parameters:
  ///   - secret: used for this step only.
  ///   - period: how long a minor lasts, 1 to 3600 seconds.
  public init(secret: BeaconSecret, step: StepID, period: Int = standardPeriod) {
    precondition(Self.periods.contains(period))
    key = Secret(secret.bytes)
    self.step = step
    self.period = period
  }

  /// The minor that is sent at a time.
  ///
  /// - Parameter time: seconds of Unix time.
  public func minor(at time: Int64) -> UInt16 { minor(ofPeriod: number(at: time)) }

  /// The minors that a proof may contain at a time: the current period's and the previous one's.
  public func accepted(at time: Int64) -> [UInt16] {
    let number = number(at: time)
    return [minor(ofPeriod: number), minor(ofPeriod: max(number - 1, 0))]
  }

  /// When the next minor begins, seconds of Unix time; after `time`.
  public func change(after time: Int64) -> Int64 { (number(at: time) + 1) * Int64(period) }

  /// The number of the period that contains a time. All times before 1970 are in period 0.
  private func number(at time: Int64) -> Int64 { max(time, 0) / Int64(period) }

  private func minor(ofPeriod number: Int64) -> UInt16 {
    // No step's id contains a zero byte, so no two inputs give the same text.
    let text = Array("stepctl beacon minor".utf8) + [0] + Array(step.description.utf8) + [0]
    return UInt16(bigEndianBytes: HMAC.code(for: text + number.bigEndianBytes, by: key).prefix(2))
  }
}
