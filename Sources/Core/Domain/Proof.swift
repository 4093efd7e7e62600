/// What a rider's program gives to show that the rider is at a step. Its worth is what a client's word is worth.
public enum Proof: Hashable, Sendable {
  /// The vehicle's beacons as they were heard, and the zone that this makes for the step.
  case beacon(zone: Zone, beacons: [HeardBeacon])
  /// An NFC tag, and the text or the URI of its record, as it was read.
  case tag(uid: TagUID, content: String)
  /// The content of a QR code, as it was read.
  case code(content: String)

  /// The most that a tag or a code on a step says, bytes.
  public static let maximumContent = 512

  public var method: ProofMethod {
    switch self {
    case .beacon: .beacon
    case .tag: .nfc
    case .code: .qr
    }
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
