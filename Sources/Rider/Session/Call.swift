public import Domain
public import StepProtocol
public import SystemIO

/// The frames that a vehicle wants to hear from this device, and when (PROTOCOL.md, 5.1).
public struct Call: Sendable {
  private let key: CallKey
  private let challenge: [UInt8]
  private let request: CallRequest
  /// When the first slot began, by this device's clock.
  private let begun: Instant

  /// - Parameter challenge: the challenge that came with the request.
  public init(_ key: CallKey, _ challenge: [UInt8], _ request: CallRequest, begun: Instant) {
    self.key = key
    self.challenge = challenge
    self.request = request
    self.begun = begun
  }

  /// The frame to send at an instant, and until when; nil when the call is over.
  public func frame(at now: Instant) -> (frame: UUID, until: Instant)? {
    let length = Duration.milliseconds(request.slot)
    let slot = max(0, Int(begun.duration(to: now) / length))
    guard slot < request.slots else { return nil }
    return (key.frame(ofSlot: slot, challenge: challenge), begun + length * (slot + 1))
  }
}
