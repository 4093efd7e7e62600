import Bluetooth
import Domain
import Ranging

/// Where the recordings come from that a step is calibrated by.
protocol PositionSource {
  /// - Returns: nil when this position is left out.
  func record(_ step: Step, at position: CalibrationPosition) throws -> PositionRecording?
}

extension PositionRecording {
  /// Adds what a radio tells until a deadline.
  ///
  /// - Returns: false when the radio ended.
  mutating func listen(to radio: any Radio, of vehicle: Vehicle, until deadline: UnixTime?) throws -> Bool {
    while true {
      switch try radio.next(until: deadline) {
      case .heard(let advertisement):
        guard let beacon = advertisement.iBeacon, beacon.uuid == vehicle.uuid else { continue }
        hear(beacon, rssi: advertisement.rssi, at: advertisement.time.seconds(since: radio.start))
      case .deadline: return true
      case .ended: return false
      }
    }
  }
}

extension CalibrationPosition {
  /// `1 m, in hand`
  var title: String { "\(distance.rawValue) m, \(carry == .hand ? "in hand" : "in a pocket")" }
}
