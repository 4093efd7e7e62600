/// What a rider's program gives to show that the rider is at a step. It is worth no more than the client's word, except
/// for `heard`.
public enum Proof: Hashable, Sendable {
  /// The vehicle's beacons as they were heard, the zone that was measured for the step (often `unknown`, between two
  /// zones), and whether the rider is in reach of this step and of no other.
  case beacon(zone: Zone, isLocated: Bool, beacons: [HeardBeacon])
  /// An NFC tag, and the text or the URI of its record, as it was read.
  case tag(uid: TagUID, content: String)
  /// The content of a QR code, as it was read.
  case code(content: String)
  /// Nothing but a reference to what the vehicle itself hears of the rider's device, which no client can claim.
  case heard

  /// The most that a tag or a code on a step says, bytes.
  public static let maximumContent = 512

  public var method: ProofMethod {
    switch self {
    case .beacon: .beacon
    case .tag: .nfc
    case .code: .qr
    case .heard: .heard
    }
  }
}

/// Which proofs of presence a vehicle accepts. A rider's program learns it with its challenge.
public struct PresencePolicy: Hashable, Sendable {
  /// The ways to prove presence that are accepted.
  public let methods: Set<ProofMethod>
  /// The farthest zone that is close enough: `near` or `immediate`.
  public let zone: Zone
  /// Whether identifiers that can be copied are enough: beacons that always send the same, plain tags, and codes.
  public let acceptsStatic: Bool
  /// Whether the vehicle must hear the rider's device beside whatever else is proved.
  public let needsHearing: Bool

  public init(methods: Set<ProofMethod>, zone: Zone, acceptsStatic: Bool, needsHearing: Bool = false) {
    self.methods = methods
    self.zone = zone
    self.acceptsStatic = acceptsStatic
    self.needsHearing = needsHearing
  }

  /// Whether what was heard is close enough.
  ///
  /// Reach decides, and the zone only where the policy asks for the nearest one: between two zones the estimator says
  /// `unknown`, so `near` cannot be asked of the zone.
  public func isNearEnough(_ zone: Zone, isLocated: Bool) -> Bool {
    isLocated && (self.zone != .immediate || zone == .immediate)
  }
}

/// What was heard of one of the vehicle's beacons.
public struct HeardBeacon: Hashable, Sendable {
  public let major: UInt16
  /// Of the last frame.
  public let minor: UInt16
  /// The mean that the zone rests on, dBm.
  public let rssi: Int
  /// The RSSI at 1 m, dBm, as measured on the vehicle or as the last frame gives it: beacons of different strengths
  /// compare by the difference.
  public let measuredPower: Int
  /// How many frames were heard lately; the mean may rest on more of them.
  public let packets: Int

  public init(major: UInt16, minor: UInt16, rssi: Int, measuredPower: Int, packets: Int) {
    self.major = major
    self.minor = minor
    self.rssi = rssi
    self.measuredPower = measuredPower
    self.packets = packets
  }

  /// Decibels above the level at 1 m: the more, the nearer.
  public var level: Int { rssi - measuredPower }
}
