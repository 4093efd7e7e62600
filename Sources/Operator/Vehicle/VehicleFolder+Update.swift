package import Domain
import Encoding
import FileFormats
import Glibc
import MQTT
import SystemIO

extension VehicleFolder {
  /// The riders who have an outdated copy of a changed vehicle.
  package struct StaleCopies: Sendable, Equatable {
    /// Riders whose folder has a new vehicle file, which they must fetch.
    package var reissued: [RiderName] = []
    /// Riders with enrolled devices, who need the vehicle's new code.
    package var others: [String] = []
    /// Riders with tokens for a step that the vehicle no longer has.
    package var withoutStep: [String] = []
  }

  /// Updates everything that depends on a changed `vehicle.toml`: the broker's files, and the riders' copies; if the
  /// broker has another address, also its certificate, and the files of the operator's other vehicles. Keys and tokens
  /// stay the same.
  ///
  /// - Parameter now: Unix time, from which the broker's new certificate is valid.
  /// - Returns: the changed vehicles, this one among them.
  package func update(now: Int64) throws -> [OperatorPlace.UpdatedVehicle] {
    try checkFinished()
    let (place, address) = (place, try readBroker())
    // The clock also tells which riders still have a token.
    try place.checkClock(now)
    if try place.broker() != address { return try place.moveBroker(to: address, now: now) }
    try place.writeBroker()
    return [(self, try reissue(now: now))]
  }

  /// Rewrites the riders' copies in their folders if they differ.
  func reissue(now: Int64) throws -> StaleCopies {
    let file = try readVehicleFile()
    let tokens = try place.ledger().tokens.filter { $0.vehicle == file.vehicle.uuid && $0.lasts(at: now) }
    let known = Set(file.vehicle.steps.map(\.id))
    var stale = StaleCopies()
    stale.withoutStep = Set(tokens.filter { !known.isSuperset(of: $0.steps) }.map(\.rider)).sorted()
    let issuer = try TokenIssuer(of: self)
    for rider in Set(tokens.map(\.rider)).sorted() {
      guard let name = RiderName(rider) else { continue }
      let copy = copy(of: name)
      guard Files.exists(copy) else {
        stale.others.append(rider)
        continue
      }
      let text = Array(try issuer.vehicleFile(for: name).render().utf8)
      guard try Files.readRegular(copy) != text else { continue }
      try Files.replaceForOwner(copy, with: text, mode: 0o644)
      stale.reissued.append(name)
    }
    return stale
  }

  /// The vehicle file in a rider's folder.
  package func copy(of rider: RiderName) -> String {
    path("\(VehiclePaths.folder(of: rider))/\(RiderPaths.vehicle)")
  }
}
