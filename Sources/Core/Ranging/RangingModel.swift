import func Glibc.log10
import func Glibc.pow

/// The constants behind the decisions. RANGING.md derives them and tells what else was tried.
///
/// A level is a frame's RSSI minus the measured power, in decibels. The measured power is the RSSI at 1 m: the value
/// measured on the vehicle, or else the value in the frame.
package enum RangingModel {
  // Evidence.

  /// How many frames of each beacon are kept. At 16 frames a second they fill the longest window.
  package static let capacity = 128
  /// The window for the zone, seconds.
  package static let zoneWindow = 8.0
  /// The window for the side and for being located, seconds.
  package static let window = 6.0
  /// The window for the distance and the RSSI, seconds. The longer windows are compared with it. The distance lags
  /// behind a walking rider by half of it.
  package static let momentWindow = 2.0
  /// With fewer frames, a beacon's zone is unknown.
  package static let least = 2
  /// With fewer frames a second it takes too long to locate the rider, so the user is warned.
  package static let leastRate = 1.0
  /// After this many seconds without a frame, a beacon counts as not heard.
  package static let silence = 5.0
  /// A clock that goes back by more than this many seconds was set.
  package static let backwards = 1.0

  /// The RSSI that a beacon can have at 1 m, dBm. Any other value means that the beacon was never set up.
  package static let measuredPowers = -100.0 ... -20.0

  // Zones: the levels at their edges, and half the widths of the bands around the edges in which the zone is unknown.

  package static let immediateEdge = 6.0
  package static let immediateBand = 1.5
  package static let farEdge = -9.5
  package static let farBand = 4.0

  // The side: the number of decibels by which a beacon must exceed every other.

  package static let sideBegin = 8.0
  package static let sideStay = 3.0
  package static let sideLeast = 2

  // A beacon that is not heard, or hardly, is evidence only while another one is heard well.

  /// How many frames of the other beacon are needed.
  package static let loneFrames = 8
  /// The RSSI that an unheard beacon counts as, dBm: just below what receivers hear.
  package static let loneFloor = -90.0
  /// The level of the other beacon that is needed: for the side, and to be located.
  package static let sideLoneLevel = -6.0
  package static let locatedLoneLevel = 0.0

  // Located: the rider is in reach of this step, and of no other.

  package static let locatedLeast = 3
  /// The certain level: the mean level minus its error, which is larger with fewer frames.
  package static let locatedBeginLevel = -7.75
  package static let locatedStayLevel = -12.0
  /// How close a rider is told to come, metres: close enough in free space, with a dozen frames.
  package static let reach = 2.0
  package static let locatedBeginDifference = 10.0
  package static let locatedStayDifference = 6.0
  /// Frames of one step whose senders differ by this many decibels come from two beacons: so much also tells two steps
  /// apart.
  package static let senderDifference = locatedBeginDifference
  /// At least this share of the frames must reach `supportLevel`, and at least `locatedLeast` frames.
  package static let locatedShare = 0.3
  package static let supportLevel = -10.0
  /// When a rider walks away, the level falls in the last moment. These tell how many frames that needs, and by how
  /// many decibels their mean may be below that of the window's earlier frames.
  package static let momentLeast = 2
  package static let momentFall = 7.0
  /// If the certain level of the last moment is this or more, a fall does not count: 1 m in free space. The moment's
  /// frames are a second old on average, and a rider who leaves walks another metre in that time.
  package static let momentNearLevel = 0.0
  /// What a body between takes: 6 to 8 dB (ITU-R P.1238, effect of movement of objects).
  package static let body = 8.0

  // Distance.

  /// The path loss exponent of free space.
  package static let exponent = 2.0
  /// 80 % of places lie within `shadowing80` decibels of the law. 80 % of single frames lie within `fading80` decibels
  /// of their place's mean.
  package static let shadowing80 = 8.2
  package static let fading80 = 5.8

  /// The error of the mean of some frames from one place, decibels. It is not exceeded in four cases out of five.
  package static func error80(frames: Int) -> Double { fading80 / Double(frames).squareRoot() }

  /// The distance at which free space gives a level, metres.
  package static func metres(at level: Double) -> Double { pow(10, -level / (10 * exponent)) }

  /// The level that free space gives at a distance.
  package static func level(at metres: Double) -> Double { -10 * exponent * log10(metres) }
}
