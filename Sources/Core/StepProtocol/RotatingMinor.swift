import Cryptography
public import Domain
import Encoding

/// The `minor` of a step's iBeacon where that changes with time, so that a recorded frame goes stale.
///
/// The first two bytes of HMAC-SHA-256 over a label, the step's id and the number of the period, as in TOTP (RFC 6238)
/// but for the digits. Only the beacon and the controller know the secret.
public struct RotatingMinor: Sendable {
  /// How long a minor can last, seconds.
  public static let periods = 1...3600
  /// Seconds, where nothing else is configured.
  public static let standardPeriod = 8

  /// Seconds.
  public let period: Int
  private let step: StepID
  private let key: Secret

  /// - Parameters:
  ///   - secret: of this step alone.
  ///   - period: how long a minor lasts, 1 to 3600 seconds.
  public init(secret: BeaconSecret, step: StepID, period: Int = standardPeriod) {
    precondition(Self.periods.contains(period))
    key = Secret(secret.bytes)
    self.step = step
    self.period = period
  }

  /// What is sent at a time.
  ///
  /// - Parameter time: seconds of Unix time.
  public func minor(at time: Int64) -> UInt16 { minor(ofPeriod: number(at: time)) }

  /// What a proof may have heard at a time: the minor of the period, and of the one before.
  public func accepted(at time: Int64) -> [UInt16] {
    let number = number(at: time)
    return [minor(ofPeriod: number), minor(ofPeriod: max(number - 1, 0))]
  }

  /// When the next minor begins, seconds of Unix time; after `time`.
  public func change(after time: Int64) -> Int64 { (number(at: time) + 1) * Int64(period) }

  /// Which period a time is in. Before 1970 there is only the first.
  private func number(at time: Int64) -> Int64 { max(time, 0) / Int64(period) }

  private func minor(ofPeriod number: Int64) -> UInt16 {
    // No step's id has a zero byte, so no two inputs are the same text.
    let text = Array("stepctl beacon minor".utf8) + [0] + Array(step.description.utf8) + [0]
    return UInt16(bigEndianBytes: HMAC.code(for: text + number.bigEndianBytes, by: key).prefix(2))
  }
}
