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

  /// Updates everything that depends on a changed `vehicle.toml`: the broker's files and certificate, its access list,
  /// and the riders' copies. Keys and tokens stay the same.
  ///
  /// - Parameter now: Unix time, from which the broker's new certificate is valid.
  package func update(now: Int64) throws -> StaleCopies {
    try checkFinished()
    let (place, file) = (place, try readVehicleFile())
    if place.isFleet {
      try place.writeAccessList()
    } else {
      let access = AccessList([
        .init(topic: try present(file.topic, "topic"), steps: file.vehicle.steps, uuid: nil)
      ])
      try place.writeRevocationList(now: now)
      for file in try brokerConfiguration().files(access) {
        try Files.replaceForOwner(path(file.name), with: file.content, mode: file.mode)
      }
      _ = try renewCertificates(now: now)
    }

    return try reissue(now: now)
  }

  /// Rewrites the riders' copies in their folders if they differ.
  func reissue(now: Int64) throws -> StaleCopies {
    let file = try readVehicleFile()
    let tokens = try place.ledger().tokens.filter { $0.vehicle == file.vehicle.uuid && $0.expires > now }
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
