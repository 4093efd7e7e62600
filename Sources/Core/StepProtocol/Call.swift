import Cryptography
public import Domain
import Encoding

/// The key with which a rider's device calls the vehicle. It is a secret of these two, exported from the HPKE context
/// of the device's question (RFC 9180 5.3).
///
/// Reading the question and all its answers is not enough to compute the key.
public struct CallKey: Sendable, Equatable {
  /// In bytes.
  private static let size = 32
  private static let exporterContext = Array("stepctl call".utf8)
  private let key: Secret

  init(_ exporter: HPKE.Exporter) { key = exporter.export(Self.exporterContext, count: Self.size) }

  /// What the device advertises in a slot: a version 4 UUID (RFC 9562 5.4) as service UUID. Its 122 free bits come from
  /// an HMAC-SHA-256 over the challenge and the slot's number. Without the key, nobody can tell it from a random one.
  ///
  /// The challenge protects against replay: a controller that has restarted accepts an old question once more, and a
  /// recording of the frames sent back then must be useless.
  public func frame(ofSlot slot: Int, challenge: [UInt8]) -> UUID {
    let code = HMAC.code(for: challenge + Int64(slot).bigEndianBytes, by: key)
    return .version4(high: UInt64(bigEndianBytes: code[..<8]), low: UInt64(bigEndianBytes: code[8..<16]))
  }
}

/// How a vehicle asks a device to call, and the step at which the vehicle hears the device so far.
///
/// Each slot's frame is sent in that slot only. The first slot begins with the answer; the others follow without a gap.
public struct CallRequest: Sendable, Equatable {
  /// The lengths that a slot can have, milliseconds.
  public static let slotLengths: ClosedRange<Int64> = 100...1_000
  /// The longest call that a vehicle may ask for, milliseconds. To call for longer, the device must ask again.
  public static let longest: Int64 = 10_000

  /// The length of a slot, milliseconds.
  public let slot: Int64
  /// How many slots there are.
  public let slots: Int
  /// The only step at which the vehicle hears the device; nil while that is not known.
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
