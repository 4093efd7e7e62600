import Cryptography
public import Domain
import Encoding

/// The key with which a rider's device calls the vehicle: a secret that only the two have, exported from the HPKE
/// context of the device's question (RFC 9180 5.3).
///
/// Somebody who reads the question and every answer to it cannot compute the key.
public struct CallKey: Sendable, Equatable {
  /// Bytes.
  private static let size = 32
  private static let exporterContext = Array("stepctl call".utf8)
  private let key: Secret

  init(_ exporter: HPKE.Exporter) { key = exporter.export(Self.exporterContext, count: Self.size) }

  /// What the device advertises in a slot: a service UUID of version 4 (RFC 9562 5.4), that is 122 bits of
  /// HMAC-SHA-256 over the challenge and the slot's number. Without the key, nobody can tell it from one that is
  /// random.
  ///
  /// The challenge is there because a controller that was restarted takes an old question once more: then a recording
  /// of the frames of that time must be worth nothing.
  public func frame(ofSlot slot: Int, challenge: [UInt8]) -> UUID {
    let code = HMAC.code(for: challenge + Int64(slot).bigEndianBytes, by: key)
    return .version4(high: UInt64(bigEndianBytes: code[..<8]), low: UInt64(bigEndianBytes: code[8..<16]))
  }
}

/// How a vehicle asks to be called, and where it hears the caller.
///
/// A slot's frame is sent in that slot alone. The slots follow each other from the moment of the answer.
public struct CallRequest: Sendable, Equatable {
  /// Milliseconds that a slot can have.
  public static let slotLengths: ClosedRange<Int64> = 100...1_000
  /// For how long a vehicle may have a device call, milliseconds. For more, the device has to ask again.
  public static let longest: Int64 = 10_000

  /// The length of a slot, milliseconds.
  public let slot: Int64
  /// How many slots there are.
  public let slots: Int
  /// The step in whose reach the vehicle hears the device, and in no other's; nil while that is not known.
  public let heard: StepID?

  public init(slot: Int64, slots: Int, heard: StepID? = nil) {
    precondition(Self.slotLengths.contains(slot) && slots > 0 && Int64(slots) <= Self.longest / slot, "too long a call")
    self.slot = slot
    self.slots = slots
    self.heard = heard
  }

  init(_ value: JSON) throws(ProtocolError) {
    var members = try ObjectReader(value, of: "call")
    slot = try members.take("slot", "100 to 1000 ms") { value in
      value.integer.flatMap { Self.slotLengths.contains($0) ? $0 : nil }
    }
    let longest = Self.longest / slot
    slots = try members.take("slots", "1 to \(longest)") { value in
      value.integer.flatMap { (1...longest).contains($0) ? Int($0) : nil }
    }
    heard = try members.takeIfPresent("heard", "the id of a step") { $0.string.flatMap { StepID($0) } }
    try members.end()
  }

  var json: JSON {
    var members: [JSON.Member] = [.init("slot", .integer(slot)), .init("slots", .integer(Int64(slots)))]
    if let heard { members.append(.init("heard", .string(heard.description))) }
    return .object(members)
  }
}
