import Access
import Domain
package import FileFormats
import Glibc
import StepProtocol
import SystemIO
package import UserSettings

/// The vehicles that a user knows (`~/.config/stepctl/vehicles`), each with its files in a folder.
///
/// A vehicle's file pins its operator's key: from then on nobody else can change the stored data about the vehicle.
package struct VehicleStore: Sendable {
  private let folders: ConfigurationFolders

  package init(_ folders: ConfigurationFolders) { self.folders = folders }

  /// The place of a vehicle, and its present content.
  package struct Place: Sendable {
    /// The folder.
    package let path: String
    /// The vehicle as this user knows it.
    package let known: VehicleFile?
    /// The name of another known vehicle of the same operator, if the operator has signed this one.
    package let sibling: String?

    /// The changes, in words for people.
    package func changes(by vehicle: ImportedVehicle) -> [String] {
      known.map { vehicle.changes(of: $0) + vehicle.accessChanges(of: $0) } ?? []
    }

    /// Whether the vehicle brings nothing new, not even another operator's key: then there is nothing to trust.
    package func isUnchanged(by vehicle: ImportedVehicle) -> Bool {
      guard let known, vehicle.operatorKey == nil || vehicle.operatorKey == known.operatorKey else { return false }
      return changes(by: vehicle).isEmpty
    }

    package var vehicleFile: String { "\(path)/\(RiderPaths.vehicle)" }
  }

  /// Finds the place for a vehicle, without changing anything.
  ///
  /// - Parameter name: the user's name for it; nil for its own name, in letters that are easy to type.
  /// - Throws: `otherOperator` if another operator's key is pinned; `notSigned` if more than a rider's access is new
  ///   and that key has not signed it; `outdated` if that key has signed something newer; `nameTaken` if another
  ///   vehicle has the name.
  package func place(for vehicle: ImportedVehicle, as name: String? = nil) throws -> Place {
    let uuid = vehicle.vehicleFile.vehicle.uuid
    guard let user = folders.user else { throw StoreError.noHome }
    let entries = try folders.vehicles()
    var same: Set<String> = []
    var known: (name: String, file: VehicleFile)?
    var sibling: String?
    for entry in entries {
      // An unreadable file could be this vehicle's, whose operator must not be forgotten.
      let file = try VehicleFile(reading: entry.path)
      guard file.vehicle.uuid == uuid else {
        // Anyone can name a public key, so naming it proves nothing.
        if sibling == nil, vehicle.isSigned, let pinned = file.operatorKey, vehicle.isVouched(by: pinned) {
          sibling = file.vehicle.name
        }
        continue
      }
      try check(vehicle, against: file, in: Self.folder(of: entry) ?? entry.path)
      same.insert(entry.name)
      if known == nil, entry.path.hasPrefix("\(user)/") { known = (entry.name, file) }
    }
    let wanted = try name.map(Self.checked)
    if let known {
      guard let folder = Self.folder(of: (known.name, known.file.path)) else {
        throw StoreError.looseFile(known.file.path)
      }
      guard wanted == nil || wanted == known.name else { throw StoreError.knownAs(known.name, known.file.path) }
      return Place(path: folder, known: known.file, sibling: sibling)
    }
    let free = wanted ?? Self.name(of: vehicle.vehicleFile.vehicle)
    if !same.contains(free), let other = entries.first(where: { $0.name == free }) {
      throw StoreError.nameTaken(free, other.path)
    }
    return Place(path: "\(user)/vehicles/\(free)", known: nil, sibling: sibling)
  }

  /// Finds a vehicle's place, and installs the vehicle there in one step. Keeps the user's own data there.
  ///
  /// Of several programs that do so at once, each one finds what the one before it has installed.
  ///
  /// - Throws: like `place(for:as:)`.
  package func install(_ vehicle: ImportedVehicle, as name: String? = nil) throws -> Place {
    guard let user = folders.user else { throw StoreError.noHome }
    return try FolderLock.during(user) {
      let place = try place(for: vehicle, as: name)
      try install(vehicle, at: place)
      return place
    }
  }

  private func install(_ vehicle: ImportedVehicle, at place: Place) throws {
    if let known = place.known {
      try update(known, by: vehicle, at: place)
    } else {
      let (parent, name) = (Files.parent(of: place.path), Files.name(of: place.path))
      try Files.createFolder(parent, mode: 0o700)
      // Left by an interrupted run, and useless.
      let new = "\(parent)/.\(name).new"
      try StagingFolder.remove(new)
      let staging = try StagingFolder(new)
      for file in vehicle.files { try staging.write(file) }
      try staging.write(NewFile(RiderPaths.vehicle, vehicle.vehicleFile.render()))
      try staging.synchronize()
      try staging.become(place.path)
    }
  }

  /// Removes a vehicle of this user, with the files in its folder.
  ///
  /// - Throws: `notOwn` for a vehicle of the system.
  package func forget(_ entry: (name: String, path: String)) throws {
    guard let user = folders.user, entry.path.hasPrefix("\(user)/") else { throw StoreError.notOwn(entry.path) }
    guard let folder = Self.folder(of: entry) else {
      try StagingFolder.remove(entry.path)
      return try Files.synchronizeFolder(of: entry.path)
    }
    // An interrupted run leaves no half of a vehicle.
    let gone = "\(Files.parent(of: folder))/.\(entry.name).gone"
    try StagingFolder.remove(gone)
    try StagingFolder.move(folder, to: gone)
    try StagingFolder.remove(gone)
    try Files.synchronizeFolder(of: gone)
  }

  // MARK: -

  /// Adds new files under free names. Then it replaces the vehicle file in one step, and removes the files that only
  /// the old vehicle file named.
  private func update(
    _ known: VehicleFile, by vehicle: ImportedVehicle, at place: Place
  ) throws(SystemError) {
    var names: [String: String] = [:]
    for file in vehicle.files {
      let name = try freeName(for: file, in: place.path)
      names[file.name] = name
      if !Files.exists("\(place.path)/\(name)") {
        try Files.create("\(place.path)/\(name)", with: file.content, mode: file.mode)
      }
    }
    let known = known.named(from: place.path)
    let merged = vehicle.vehicleFile.renamed(names).keeping(known)
    try Files.replace(place.vehicleFile, with: merged.render().utf8, mode: 0o644)
    for name in known.fileNames.subtracting(merged.fileNames) where !name.contains("/") {
      unlink("\(place.path)/\(name)")
    }
  }

  /// The file's own name if that is free or has the same content, else a name with a number.
  private func freeName(for file: NewFile, in folder: String) throws(SystemError) -> String {
    let parts = file.name.split(separator: ".", maxSplits: 1)
    var number = 1
    while true {
      let name = number == 1 ? file.name : "\(parts[0])-\(number).\(parts[1])"
      let path = "\(folder)/\(name)"
      if !Files.exists(path) { return name }
      if try Files.read(path) == file.content { return name }
      number += 1
    }
  }

  /// The folder of a vehicle; nil for a single file.
  private static func folder(of entry: (name: String, path: String)) -> String? {
    entry.path.hasSuffix("/\(entry.name)/\(RiderPaths.vehicle)") ? Files.parent(of: entry.path) : nil
  }

  /// - Parameter place: the known vehicle's folder, or its file if it has no folder.
  private func check(
    _ vehicle: ImportedVehicle, against known: VehicleFile, in place: String
  ) throws {
    guard let pinned = known.operatorKey else { return }
    let key = vehicle.operatorKey
    guard vehicle.isVouched(by: pinned) else {
      throw StoreError.otherOperator(known.path, place: place, found: key?.thumbprint)
    }
    if let token = vehicle.access?.token, let rider = known.rider,
      let before = try? Token(unverified: KeyFile.token(rider.token)).issued, before > token.issued ?? 0
    {
      throw StoreError.older(known.path)
    }
    // Anyone can name a public key, so naming it proves nothing.
    let changes = vehicle.changes(of: known)
    if changes.isEmpty { return }
    guard let issued = vehicle.issued else { throw StoreError.notSigned(known.path, changes) }
    // The operator may have had a reason to abandon the broker or the keys in an old code.
    guard issued >= known.signed ?? 0 else { throw StoreError.outdated(known.path, changes) }
  }

  /// Letters and digits, with a hyphen for anything in between: `Rolling Chassis` becomes `rolling-chassis`.
  private static func name(of vehicle: Vehicle) -> String {
    let name = Vehicle.typable(vehicle.name)
    return name.isEmpty ? String(vehicle.uuid.description.prefix(8)) : String(name.prefix(64))
  }

  private static func checked(_ name: String) throws(StoreError) -> String {
    // A name that ends with `.toml` is for a file, not for a folder.
    guard RiderName(name) != nil, !name.hasSuffix(".toml") else { throw StoreError.unusableVehicleName(name) }
    return name
  }
}
