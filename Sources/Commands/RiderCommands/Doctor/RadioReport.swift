import Bluetooth
import Domain
import Encoding

/// The findings about a radio, for people and for programs.
struct RadioReport {
  /// How much was heard.
  struct Heard {
    let seconds: Double
    let advertisements: Int
    /// The advertisements that came from beacons.
    let frames: Int
    let beacons: Int
    /// RSSI readings a second of the most frequent beacon.
    let readingsPerSecond: Double
  }

  let radio: RadioSpec
  var examination: Examination
  var heard: Heard?
  /// Why the radio is unusable.
  var failure: RadioError?

  init(radio: RadioSpec) {
    self.radio = radio
    examination = Examination(radio.description)
  }

  var json: JSON {
    .object(
      [.init("radio", .string(radio.description)), .init("usable", .bool(failure == nil))] + examination.members + [
        .init("seconds", .rounded(heard?.seconds, places: 1)),
        .init("advertisements", heard.map { .integer(Int64($0.advertisements)) } ?? .null),
        .init("frames", heard.map { .integer(Int64($0.frames)) } ?? .null),
        .init("beacons", heard.map { .integer(Int64($0.beacons)) } ?? .null),
        .init("readings_per_second", .rounded(heard?.readingsPerSecond, places: 1)),
      ])
  }
}
