/// A rider's evidence of being at a step. It is only the client's word, except for `heard`.
public enum Proof: Hashable, Sendable {
  /// The vehicle's beacons as heard, the zone measured for the step (often `unknown`, between two zones), and whether
  /// the rider is in reach of this step and of no other.
  case beacon(zone: Zone, isLocated: Bool, beacons: [HeardBeacon])
  /// An NFC tag, and the text or the URI of its record, as it was read.
  case tag(uid: TagUID, content: String)
  /// The content of a QR code, as it was read.
  case code(content: String)
  /// No data: it refers to what the vehicle itself hears of the rider's device. No client can claim that.
  case heard

  /// The longest content of a tag or a code on a step, bytes.
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

/// Which proofs of presence a vehicle accepts. A rider's program receives it with the challenge.
public struct PresencePolicy: Hashable, Sendable {
  /// The ways to prove presence that are accepted.
  public let methods: Set<ProofMethod>
  /// The farthest zone that is close enough: `near` or `immediate`.
  public let zone: Zone
  /// Whether identifiers that can be copied are enough: beacons with a fixed minor, plain tags, and codes.
  public let acceptsStatic: Bool
  /// Whether the vehicle must hear the rider's device in addition to any other proof.
  public let needsHearing: Bool

  public init(methods: Set<ProofMethod>, zone: Zone, acceptsStatic: Bool, needsHearing: Bool = false) {
    self.methods = methods
    self.zone = zone
    self.acceptsStatic = acceptsStatic
    self.needsHearing = needsHearing
  }

  /// Whether the rider is close enough.
  ///
  /// Being located decides. The zone counts only if the policy asks for the nearest one: between two zones the
  /// estimator says `unknown`, so the policy cannot require `near`.
  public func isNearEnough(_ zone: Zone, isLocated: Bool) -> Bool {
    isLocated && (self.zone != .immediate || zone == .immediate)
  }
}

/// What was heard from one of the vehicle's beacons.
public struct HeardBeacon: Hashable, Sendable {
  public let major: UInt16
  /// The last frame's minor.
  public let minor: UInt16
  /// The mean that the zone is decided by, dBm.
  public let rssi: Int
  /// The RSSI at 1 m, dBm, as measured on the vehicle or as given in the last frame. The difference makes beacons of
  /// different strengths comparable.
  public let measuredPower: Int
  /// How many frames were heard lately. The mean may include older ones.
  public let packets: Int

  public init(major: UInt16, minor: UInt16, rssi: Int, measuredPower: Int, packets: Int) {
    self.major = major
    self.minor = minor
    self.rssi = rssi
    self.measuredPower = measuredPower
    self.packets = packets
  }

  /// Decibels above the level at 1 m: higher means nearer.
  public var level: Int { rssi - measuredPower }
}
