import Domain
import FileFormats
package import SystemIO

/// Where configuration is kept (XDG Base Directory Specification 0.8): the user's folder, and the system's.
package struct ConfigurationFolders: Equatable, Sendable {
  /// `$XDG_CONFIG_HOME/stepctl`, else `~/.config/stepctl`; nil for a process without a home.
  package let user: String?
  package let system: String
  /// The folder for what a user's programs remember: `$XDG_STATE_HOME/stepctl`, else `~/.local/state/stepctl`; nil for
  /// a process without a home.
  package let state: String?
  private let home: String?
  /// Who typed `sudo`: with it, `~` is root's folder, and not this user's. Nil without it.
  let sudoer: String?

  /// - Parameter system: `/etc/stepctl`, except in tests.
  package init(environment: [String: String], system: String = "/etc/stepctl") {
    // The specification says to ignore relative paths.
    home = environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
    let base = environment["XDG_CONFIG_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? home.map { "\($0)/.config" }
    user = base.map { "\($0)/stepctl" }
    let noted = environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
    state = (noted ?? home.map { "\($0)/.local/state" }).map { "\($0)/stepctl" }
    self.system = system
    sudoer = environment["SUDO_USER"].flatMap { $0.isEmpty || $0 == "root" ? nil : $0 }
  }

  /// The folders. The user's comes first and has priority.
  package var all: [String] { [user, system].compactMap { $0 } }

  /// The `config.toml` of each folder; the files need not exist.
  package var configFiles: [String] { all.map { "\($0)/config.toml" } }

  /// The folders of vehicle files. In each, a vehicle is `NAME.toml`, or `NAME/vehicle.toml` with its other files.
  package var vehicleFolders: [String] { all.map { "\($0)/vehicles" } }

  /// The vehicle files, by name. With equal names, the user's hides the system's, and a folder hides a file.
  ///
  /// - Throws: if this user may not read a folder, because the wanted vehicle could be in it.
  package func vehicles() throws(SystemError) -> [(name: String, path: String)] {
    var paths: [String: String] = [:]
    for folder in vehicleFolders where Files.exists(folder) {
      for entry in try Files.names(in: folder).sorted() where !entry.hasPrefix(".") {
        let isFile = entry.hasSuffix(".toml")
        let path = isFile ? "\(folder)/\(entry)" : "\(folder)/\(entry)/vehicle.toml"
        let name = isFile ? String(entry.dropLast(5)) : entry
        if paths[name] == nil, isFile || Files.exists(path) { paths[name] = path }
      }
    }
    return paths.sorted { $0.key < $1.key }.map { (name: $0.key, path: $0.value) }
  }

  /// The file of the known vehicle whose own name this is; nil if there is none.
  ///
  /// - Throws: if there are several, or if this user may not read a folder.
  package func vehicle(called name: String) throws -> String? {
    try Self.vehicle(called: name, among: vehicles().map(\.path))
  }

  /// The file of the vehicle whose own name this is, in a folder that is in this folder; nil if there is none.
  ///
  /// - Throws: if there are several.
  package static func vehicle(called name: String, in folder: String) throws -> String? {
    let entries = ((try? Files.names(in: folder)) ?? []).sorted().filter { !$0.hasPrefix(".") }
    let prefix = folder == "." ? "" : "\(folder)/"
    return try vehicle(called: name, among: entries.map { "\(prefix)\($0)/vehicle.toml" }.filter(Files.exists))
  }

  /// An unreadable file is none that could be meant.
  private static func vehicle(called name: String, among paths: [String]) throws -> String? {
    let meant = paths.filter { path in
      (try? VehicleFile(reading: path)).map { Vehicle.isMeant($0.vehicle.name, by: name) } ?? false
    }
    guard meant.count < 2 else {
      throw ConfigurationError(
        "vehicle", "several are called \(TOMLText.quoted(name))",
        hint: "give the file: \(alternatives(meant.map(shellWord)))")
    }
    return meant.first
  }

  /// A path in people's form, with `~` for their home.
  package func displayed(_ path: String) -> String {
    guard let home, path.hasPrefix("\(home)/") else { return path }
    return "~" + path.dropFirst(home.count)
  }

  /// Expands a path in a configuration file, where no shell replaces the `~`.
  func expanded(_ path: String) -> String {
    guard let home, path.hasPrefix("~/") else { return path }
    return home + path.dropFirst()
  }
}
