import Bluetooth
import Ranging
import Terminal

extension LocationReport {
  /// That there were too few readings to decide by, where bluetoothd is to blame.
  ///
  /// It has the controller report each device once a scan, and while another program keeps it scanning it does not
  /// begin anew for us. Then there is a reading in 10 s or so.
  var shortage: String? {
    guard case .bluez = radio, location.readings.contains(where: { $0.age != nil }) else { return nil }
    let packets = location.readings.map(\.packets).max() ?? 0
    let rate = Double(packets) / min(max(location.time, 1), RangingModel.window)
    guard rate < RangingModel.leastRate else { return nil }
    return """
      bluetoothd passes on \(tenths(rate)) readings a second, too few to decide by, while another program has it scan: \
      end that one, or use --radio hciN
      """
  }
}
