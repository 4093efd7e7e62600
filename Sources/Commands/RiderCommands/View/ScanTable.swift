import Domain
import Ranging

/// The beacons that a technician's radio hears, whoever owns them.
struct ScanTable {
  struct Row {
    let beacon: IBeacon
    let zone: Zone
    /// The level that determined the zone, or else the last frame's level, dBm.
    let rssi: Int?
    let history: SignalHistory
    /// Seconds since the last frame.
    let age: Double

    /// Whether the beacon is probably still there.
    var isHeard: Bool { age <= RangingModel.silence }
  }

  private struct Beacon {
    var frame: IBeacon
    var address: DeviceAddress
    var rssi: Int8?
    var history = SignalHistory()
    var last: Double
    var locator: Locator

    init(_ frame: IBeacon, _ advertisement: Advertisement, at time: Double) {
      self.frame = frame
      address = advertisement.address
      last = time
      // The locator turns levels into zones. It sees each beacon as a separate step, whose id is this text.
      locator = Locator(steps: [Step(id: StepID("beacon")!, side: .left, major: frame.major)])
    }
  }

  /// Seconds after which a silent beacon leaves the table. It is dimmed earlier, when its zone becomes unknown.
  static let memory = 30.0
  /// More beacons than any place has. The limit keeps invented beacons from filling the memory.
  static let most = 512

  private var beacons: [Beacon] = []

  /// How many iBeacon frames were heard, and how many advertisements without one.
  private(set) var frames = 0
  private(set) var others = 0

  /// - Parameter time: seconds on the radio's clock since it was opened.
  mutating func hear(_ advertisement: Advertisement, at time: Double) {
    let found = advertisement.iBeacons
    if found.isEmpty { others += 1 }
    for frame in found { hear(frame, of: advertisement, at: time) }
  }

  private mutating func hear(_ frame: IBeacon, of advertisement: Advertisement, at time: Double) {
    frames += 1
    let index = place(of: frame, from: advertisement.address) ?? add(Beacon(frame, advertisement, at: time))
    beacons[index].frame = frame
    beacons[index].address = advertisement.address
    beacons[index].rssi = advertisement.rssi ?? beacons[index].rssi
    beacons[index].history.hear(rssi: advertisement.rssi, at: time)
    beacons[index].locator.hear(frame, from: advertisement.address, rssi: advertisement.rssi, at: time)
    beacons[index].last = time
  }

  /// The recently heard beacons, sorted by UUID and major, then by when they were first heard.
  ///
  /// Call this every half second, as with `Locator`.
  mutating func rows(at time: Double) -> [Row] {
    beacons.removeAll { time - $0.last > Self.memory }
    return beacons.indices.map { index in
      let reading = beacons[index].locator.decide(at: time).readings[0]
      let beacon = beacons[index]
      return Row(
        beacon: beacon.frame, zone: reading.zone, rssi: reading.rssi ?? beacon.rssi.map(Int.init),
        history: beacon.history, age: max(0, time - beacon.last))
    }
  }

  /// A beacon may change its minor or its address. If both change, it counts as another beacon.
  private func place(of frame: IBeacon, from address: DeviceAddress) -> Int? {
    beacons.firstIndex {
      $0.frame.uuid == frame.uuid && $0.frame.major == frame.major
        && ($0.frame.minor == frame.minor || $0.address == address)
    }
  }

  private mutating func add(_ beacon: Beacon) -> Int {
    if beacons.count >= Self.most, let oldest = beacons.indices.min(by: { beacons[$0].last < beacons[$1].last }) {
      beacons.remove(at: oldest)
    }
    let index = beacons.firstIndex { $0.frame.sortKey > beacon.frame.sortKey } ?? beacons.endIndex
    beacons.insert(beacon, at: index)
    return index
  }
}

extension IBeacon {
  fileprivate var sortKey: (UInt64, UInt64, UInt16) { (uuidHigh, uuidLow, major) }
}
