import StepDomain
import Glibc

/// The numbers that decisions are made by. Levels are decibels above the beacon's measured power, which is its RSSI
/// at 1 m.
package struct RangingModel: Sendable, Equatable {
  /// How many frames of a beacon are kept.
  var capacity = 64
  /// A clock that goes back by more than this began anew, seconds.
  var backwardJump = 1.0

  // Zones.

  /// Seconds.
  var zoneWindow = 5.0
  /// With fewer frames than this in the window, older ones are taken as well, up to `zoneReach` seconds.
  var zoneEnough = 5
  var zoneReach = 10.0
  /// Fewer frames than this say nothing.
  var zoneMinimum = 2
  /// After this many seconds without a frame nothing is known.
  var silence = 4.0
  /// The level at 0.5 m, and half the width of the band around it in which the two zones cannot be told apart.
  var immediateEdge = 5.0
  var immediateBand = 1.0
  /// The same at 3 m. Shadowing makes the levels there overlap far more.
  var nearEdge = -9.5
  var nearBand = 3.5

  // The side.

  var sideWindow = 5.0
  var sideMinimum = 2
  /// By how many decibels one beacon must exceed the others to be faced, and to stay so.
  var sideBegin = 7.0
  var sideStay = 6.0
  /// By how much one frame may exceed the median of its window.
  var clip = 10.0
  /// A beacon that is not heard counts as just below what receivers hear, dBm, if the other has so many frames and
  /// such a level.
  var sensitivity = -90.0
  var missingMinimum = 5
  var missingLevel = -12.0

  // In reach of this step and of no other.

  var locatedWindow = 5.0
  var locatedMinimum = 3
  var locatedAge = 2.0
  var locatedBeginLevel = -6.0
  var locatedStayLevel = -12.0
  var locatedBeginDifference = 8.0
  var locatedStayDifference = 6.0

  package init() {}

  func zone(of level: Double) -> Zone {
    if level >= immediateEdge + immediateBand { return .immediate }
    if level <= nearEdge - nearBand { return .far }
    if level <= immediateEdge - immediateBand, level >= nearEdge + nearBand { return .near }
    return .unknown
  }

  /// Metres: the straight line (in the logarithm of the distance) through the two edges.
  func distance(at level: Double) -> Double {
    0.5 * pow(6, (immediateEdge - level) / (immediateEdge - nearEdge))
  }
}
