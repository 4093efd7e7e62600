package import Bluetooth
package import Domain
package import Ranging
package import SystemIO

/// One way to find the step that the rider stands at: by the radio, by a tag, by a code.
///
/// A search waits for a device, so each runs on a thread of its own.
package protocol StepSearch: Sendable {
  var method: ProofMethod { get }

  /// Searches until its own time is up, the interruption ends it, or it has nothing more to find.
  ///
  /// A tag or a code that names a step ends its search. The radio goes on: where a rider is changes, and a vehicle may
  /// ask for more than that the rider is located.
  ///
  /// - Parameter tell: gets what happens meanwhile, on the search's thread.
  /// - Throws: `Failure`: `SightingError` where there was nothing to find, or the device's error.
  func find(until interruption: Interruption, tell: (SearchEvent) -> Void) throws -> Finding
}

/// Gets what a device sends and hears, a line each, for whoever looks for a fault. It is called on the search's thread.
package typealias Trace = @Sendable (String) -> Void

/// What a search has to tell before it ends.
package enum SearchEvent: Sendable {
  /// What the user should know of a device: a sentence without a full stop.
  case note(String)
  /// Where the rider seems to be, and the sighting that follows from it. A later decision of a live radio replaces it.
  case decided(Location, Sighting?)
  /// How much time is left for a tag or a code to come.
  case waiting(left: Duration)
  /// The search ended.
  case ended(Result<Finding, any Error>)
}

/// What a search ended with.
package enum Finding: Sendable {
  case sighted(Sighting)
  /// The beacons do not say enough. The location is the last that was decided.
  case undecided(Location, RadioSpec)
}
