package import Bluetooth
package import Domain
import Ranging
package import SystemIO

/// Finds out which of several vehicles are near: their beacons send the vehicle's UUID.
package struct VehicleSearch {
  private let vehicles: Set<UUID>
  private let radio: RadioSpec
  /// Seconds of the radio's clock.
  private let limit: Double
  /// How long to listen for a second vehicle after the first is heard, seconds: a beacon sends several times in that
  /// time.
  private static let further = 1.0

  package init(_ vehicles: Set<UUID>, radio: RadioSpec, limit: Double) {
    self.vehicles = vehicles
    self.radio = radio
    self.limit = limit
  }

  /// - Parameters:
  ///   - tell: gets what the user should know about the radio.
  ///   - trace: gets what the radio hears; nil if it is not wanted.
  /// - Returns: the vehicles that are heard; an empty set when the time is up.
  package func find(
    until interruption: Interruption, tell: @escaping (String) -> Void, trace: Trace? = nil
  ) throws(RadioError) -> Set<UUID> {
    let radio = try radio.open(interruption: interruption, tell: tell, trace: trace)
    defer { radio.close() }
    var heard: Set<UUID> = []
    var end = UnixTime(microseconds: radio.start.microseconds + Int64(limit * 1e6))
    while case .heard(let advertisement) = try radio.next(until: end), heard.count < vehicles.count {
      for uuid in advertisement.iBeacons.map(\.uuid) where vehicles.contains(uuid) {
        if heard.isEmpty {
          end = min(end, UnixTime(microseconds: advertisement.time.microseconds + Int64(Self.further * 1e6)))
        }
        heard.insert(uuid)
      }
    }
    return heard
  }
}
