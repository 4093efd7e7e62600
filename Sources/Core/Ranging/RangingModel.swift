import func Glibc.log10
import func Glibc.pow

/// The numbers that decisions are made by; RANGING.md has their derivation and what else was tried.
///
/// A level is the decibels by which a frame's RSSI exceeds the measured power, which is the RSSI at 1 m: the frame's own,
/// unless it was measured on the vehicle.
package enum RangingModel {
  // Evidence.

  /// Frames that are kept of each beacon; at 16 a second they fill the longest window.
  static let capacity = 128
  /// What the zone, the distance and the RSSI rest on, seconds.
  static let zoneWindow = 8.0
  /// What the side and being located rest on, seconds.
  package static let window = 6.0
  /// With fewer frames nothing is said of a beacon.
  static let least = 2
  /// With fewer frames a second it takes too long to be sure of a step, and the user is told.
  package static let leastRate = 1.0
  /// After so many seconds without a frame a beacon counts as not heard.
  package static let silence = 5.0
  /// A clock that goes back by more than this, seconds, began anew.
  static let backwards = 1.0

  /// What a beacon can be measured at in a metre's distance, dBm; other values are those of beacons that nobody set.
  static let measuredPowers = -100.0 ... -20.0

  // Zones: the levels at their edges, and half the widths of the bands in which two zones cannot be told apart.

  static let immediateEdge = 4.5
  static let immediateBand = 1.5
  static let farEdge = -9.5
  static let farBand = 4.0

  // The side: by how many decibels a beacon exceeds every other.

  static let sideBegin = 8.0
  static let sideStay = 3.0
  static let sideLeast = 2

  // A beacon that is not heard, or hardly, is evidence only while another is heard well.

  /// Frames of the other that it takes.
  static let loneFrames = 8
  /// What an unheard beacon counts as: just below what receivers hear, dBm.
  static let loneFloor = -90.0
  /// The level of the other that it takes, for the side and for being located.
  static let sideLoneLevel = -6.0
  static let locatedLoneLevel = 0.0

  // Located: in reach of this step, and of no other.

  package static let locatedLeast = 3
  package static let locatedBeginLevel = -6.0
  static let locatedStayLevel = -10.0
  static let locatedBeginDifference = 10.0
  static let locatedStayDifference = 6.0
  /// How many of the frames must have the level to stay, besides `locatedLeast`.
  static let locatedShare = 0.3
  /// Whoever walks away is heard to fall in the last moment: how long that is, the frames that it takes, and by how
  /// many decibels it may lie below the window's level.
  package static let momentWindow = 2.5
  static let momentLeast = 2
  static let momentFall = 4.0

  // Distance.

  /// The path loss exponent of free space.
  static let exponent = 2.0
  /// Decibels within which 80 % of places lie of the law, and 80 % of single frames of their place.
  static let shadowing80 = 8.2
  static let fading80 = 5.8

  /// The distance at which a level is received in free space, metres.
  package static func metres(at level: Double) -> Double { pow(10, -level / (10 * exponent)) }

  /// The same the other way round.
  static func level(at metres: Double) -> Double { -10 * exponent * log10(metres) }
}
