import func Glibc.log10
import func Glibc.pow

/// The numbers behind the decisions. RANGING.md derives them and says what else was tried.
///
/// A level is a frame's RSSI minus the measured power, in decibels. The measured power is the RSSI at 1 m: the one that
/// the frame gives, unless it was measured on the vehicle.
package enum RangingModel {
  // Evidence.

  /// How many frames of each beacon are kept. At 16 a second they fill the longest window.
  static let capacity = 128
  /// What the zone rests on, seconds.
  package static let zoneWindow = 8.0
  /// What the side and being located rest on, seconds.
  package static let window = 6.0
  /// What the distance and the RSSI rest on, seconds, and what the longer windows are compared with: half of it is by
  /// how much a distance lags behind a rider who walks.
  package static let momentWindow = 2.0
  /// With fewer frames a beacon's zone is unknown.
  static let least = 2
  /// With fewer frames a second it takes too long to locate the rider, and the user is told.
  package static let leastRate = 1.0
  /// After this many seconds without a frame a beacon counts as not heard.
  package static let silence = 5.0
  /// A clock that goes back by more than this, seconds, was set.
  static let backwards = 1.0

  /// The RSSI that a beacon can have at 1 m, dBm. Other values come from beacons that nobody has set.
  package static let measuredPowers = -100.0 ... -20.0

  // Zones: the levels at their edges, and half the widths of the bands in which two zones cannot be told apart.

  static let immediateEdge = 6.0
  static let immediateBand = 1.5
  static let farEdge = -9.5
  static let farBand = 4.0

  // The side: by how many decibels a beacon exceeds every other.

  static let sideBegin = 8.0
  static let sideStay = 3.0
  static let sideLeast = 2

  // A beacon that is not heard, or hardly, is evidence only while another is heard well.

  /// How many frames of the other are needed.
  static let loneFrames = 8
  /// The RSSI that an unheard beacon counts as, dBm: just below what receivers hear.
  static let loneFloor = -90.0
  /// The level of the other that is needed, for the side and to be located.
  static let sideLoneLevel = -6.0
  static let locatedLoneLevel = 0.0

  // Located: the rider is in reach of this step, and of no other.

  package static let locatedLeast = 3
  /// The certain level: the mean level minus the error that comes with few frames.
  static let locatedBeginLevel = -7.75
  static let locatedStayLevel = -12.0
  /// How near a rider is told to come, metres: in free space a dozen frames are enough there.
  package static let reach = 2.0
  static let locatedBeginDifference = 10.0
  static let locatedStayDifference = 6.0
  /// The share of the frames that must have this level. There must also be `locatedLeast` of them.
  static let locatedShare = 0.3
  static let supportLevel = -10.0
  /// When the rider walks away, the level falls in the last moment: how many frames that takes, and by how many
  /// decibels their mean may lie below the one of the window's other frames.
  static let momentLeast = 2
  static let momentFall = 7.0
  /// The certain level of the last moment at which a fall does not count, 1 m in free space. The moment is a second old
  /// on average, in which a rider who leaves walks another metre.
  static let momentNearLevel = 0.0
  /// What a body takes that stands between: 6 to 8 dB (ITU-R P.1238, effect of movement of objects).
  static let body = 8.0

  // Distance.

  /// The path loss exponent of free space.
  static let exponent = 2.0
  /// 80 % of places lie within this many decibels of the law, and 80 % of single frames within this many of their
  /// place.
  static let shadowing80 = 8.2
  static let fading80 = 5.8

  /// How many decibels the mean of some frames of one place may be wrong by, four times out of five.
  static func error80(frames: Int) -> Double { fading80 / Double(frames).squareRoot() }

  /// The distance at which free space gives a level, metres.
  package static func metres(at level: Double) -> Double { pow(10, -level / (10 * exponent)) }

  /// The level that free space gives at a distance.
  static func level(at metres: Double) -> Double { -10 * exponent * log10(metres) }
}
