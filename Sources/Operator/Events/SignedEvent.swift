public import Domain
public import StepProtocol

/// An event as its vehicle has signed it.
public struct SignedEvent: Sendable, Equatable {
  public let event: VehicleEvent
  /// The next event of the vehicle names it.
  public let digest: EventDigest
  /// The compact form.
  public let text: [UInt8]

  /// - Parameter text: the compact form that the event was read from.
  init(_ event: VehicleEvent, _ text: [UInt8]) {
    (self.event, self.text) = (event, text)
    digest = EventDigest(of: text)
  }

  /// Reads what was verified before, and kept since.
  public init(kept text: [UInt8]) throws(ProtocolError) { self.init(try VehicleEvent(unverified: text), text) }

  public var place: EventPlace { EventPlace(event.sequence, digest) }
}

/// Opens what vehicles report, with the operator's keys as they were when it was made.
public struct EventOpener: Sendable {
  private let keys: [DecryptionKey]

  /// - Parameter keys: the present key, and the one before.
  public init(_ keys: [DecryptionKey]) { self.keys = keys }

  /// - Parameter controller: the key that verifies what the vehicle has signed.
  /// - Throws: if the payload is no event of that vehicle.
  public func event(
    _ payload: [UInt8], of vehicle: UUID, verifiedBy controller: VerificationKey
  ) throws(ProtocolError) -> SignedEvent {
    let text = try VehicleEvent.opened(payload, with: keys)
    let event = try VehicleEvent(verifying: text, by: controller)
    guard event.vehicle == vehicle else { throw .malformed("the event is another vehicle's") }
    return SignedEvent(event, text)
  }
}
