import Domain
import Encoding
import Ranging

/// Wraps another radio, and traces each received advertisement before passing it on.
///
/// Anybody can send any number of advertisements. So at most `mostPerSecond` are traced in each second of the radio's
/// clock, followed by the number of the others. iBeacons are counted separately, so that others cannot crowd them out.
final class TracedRadio: Radio {
  private let radio: any Radio
  private let name: String
  private let trace: (String) -> Void

  /// The limit for iBeacons, and the same for others.
  static let mostPerSecond = 10
  /// The present second on the radio's clock, and the counts in it.
  private var second: Int64?
  private var told = (beacons: 0, others: 0)
  private var untold = 0

  init(_ radio: any Radio, named name: String, _ trace: @escaping (String) -> Void) {
    self.radio = radio
    self.name = name
    self.trace = trace
  }

  var start: UnixTime { radio.start }

  func next(until deadline: UnixTime?) throws(RadioError) -> RadioEvent {
    let event = try radio.next(until: deadline)
    switch event {
    case .heard(let advertisement): tell(advertisement)
    case .deadline(let time): begin(time)
    case .ended: sum()
    }
    return event
  }

  func close() {
    sum()
    radio.close()
  }

  private func tell(_ advertisement: Advertisement) {
    begin(advertisement.time)
    let isTold: Bool
    if advertisement.iBeacon != nil {
      told.beacons += 1
      isTold = told.beacons <= Self.mostPerSecond
    } else {
      told.others += 1
      isTold = told.others <= Self.mostPerSecond
    }
    guard isTold else {
      untold += 1
      return
    }
    let level = advertisement.rssi.map { "\($0) dBm" } ?? "? dBm"
    trace("< \(name) \(advertisement.address) \(level) \(hexadecimal(advertisement.data))")
  }

  private func begin(_ time: UnixTime) {
    let now = time.microseconds / 1_000_000
    guard now != second else { return }
    sum()
    (second, told) = (now, (0, 0))
  }

  private func sum() {
    if untold > 0 { trace("< \(name) \(untold) more in that second") }
    untold = 0
  }
}
