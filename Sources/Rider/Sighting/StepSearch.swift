package import Bluetooth
package import Domain
package import Ranging
package import SystemIO

/// One way to find the step that the rider stands at: by radio, by tag, or by code.
///
/// A search waits for a device, so each search runs on a separate thread.
package protocol StepSearch: Sendable {
  var method: ProofMethod { get }

  /// Searches until its own time is up, the interruption ends it, or nothing more can be found.
  ///
  /// A tag or a code that names a step ends its search. The radio search continues: the rider moves, and a vehicle may
  /// require more than a located rider.
  ///
  /// - Parameter tell: gets the events meanwhile, on the search's thread.
  /// - Throws: `Failure`: `SightingError` if nothing was found, or the device's error.
  func find(until interruption: Interruption, tell: @escaping (SearchEvent) -> Void) throws -> Finding
}

/// Gets what a device sends and hears, line by line, for troubleshooting. It is called on the search's thread.
package typealias Trace = @Sendable (String) -> Void

/// An event of a search.
package enum SearchEvent: Sendable {
  /// Information for the user about a device: a sentence without a full stop.
  case note(String)
  /// Where the rider seems to be, and the resulting sighting. A later decision of a live radio replaces it.
  case decided(Location, Sighting?)
  /// How much time is left for a tag or a code to appear.
  case waiting(left: Duration)
  /// The search ended.
  case ended(Result<Finding, any Error>)
}

/// The result of a search.
package enum Finding: Sendable {
  case sighted(Sighting)
  /// The beacons are not enough. The location is the last decision.
  case undecided(Location, RadioSpec)
}
