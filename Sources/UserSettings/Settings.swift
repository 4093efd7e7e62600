import Domain
package import FileFormats
import SystemIO

/// The settings of every command, and the source of each: the flag, else the environment, else the user's
/// `config.toml`, else the system's, else the default.
package struct Settings: Equatable, Sendable {
  /// The settings from the command line.
  package struct Flags: Sendable {
    package var vehicle: String?
    package var radio: String?
    package var nfc: String?
    /// As typed: `10`, `10s`, `2m`.
    package var timeout: String?

    package init(vehicle: String? = nil, radio: String? = nil, nfc: String? = nil, timeout: String? = nil) {
      self.vehicle = vehicle
      self.radio = radio
      self.nfc = nfc
      self.timeout = timeout
    }
  }

  package static let standardRadio = "hci0"
  package static let standardVia = "auto"
  /// Seconds.
  package static let standardTimeout = 10.0

  /// A vehicle file or its name, as given; nil if none was given.
  package let vehicle: Setting<String?>
  package let radio: Setting<String>
  /// The connection string of the NFC reader; nil if none was given, and libnfc chooses.
  package let nfc: Setting<String?>
  /// How to get to the vehicle, as `--via` has it.
  package let via: Setting<String>
  /// Seconds.
  package let timeout: Setting<Double>
  package let folders: ConfigurationFolders

  /// - Parameter environment: `STEPCTL_VEHICLE`, `STEPCTL_RADIO`, `STEPCTL_NFC`, `STEPCTL_VIA` and `STEPCTL_TIMEOUT`;
  ///   an empty one counts as unset.
  /// - Throws: for an invalid value, and for a file that cannot be read. A `config.toml` need not exist.
  package init(
    flags: Flags, environment: [String: String], folders: ConfigurationFolders
  ) throws {
    var files: [TOMLTable<Key>] = []
    for path in folders.configFiles where Files.exists(path) {
      files.append(try TOMLTable(TOMLDocument(reading: path)))
    }
    let sources = Sources(environment: environment, files: files, folders: folders)
    let named = try sources.resolve(
      .vehicle, .text, flag: flags.vehicle.map(TOMLValue.string),
      file: { Self.isPath($0) ? $1.resolve(folders.expanded($0)) : $0 })
    vehicle = named.map { Setting($0.value, $0.origin) } ?? Setting(nil, .standard)
    radio =
      try sources.resolve(.radio, .text, flag: flags.radio.map(TOMLValue.string))
      ?? Setting(Self.standardRadio, .standard)
    let reader = try sources.resolve(.nfc, .text, flag: flags.nfc.map(TOMLValue.string))
    nfc = reader.map { Setting($0.value, $0.origin) } ?? Setting(nil, .standard)
    via = try sources.resolve(.via, .text, flag: nil) ?? Setting(Self.standardVia, .standard)
    timeout =
      try sources.resolve(.timeout, .timeout, flag: flags.timeout.map(TOMLValue.string))
      ?? Setting(Self.standardTimeout, .standard)
    self.folders = folders
  }

  private enum Key: String, TOMLKey {
    case vehicle, radio, nfc, via, timeout
  }

  private struct Sources {
    let environment: [String: String]
    let files: [TOMLTable<Key>]
    let folders: ConfigurationFolders

    /// The value of the first source that has one: flag, variable, files.
    ///
    /// - Parameter adjust: converts a value in a file to its meaning outside that file's folder.
    func resolve<Value>(
      _ key: Key, _ form: TOMLForm<Value>, flag: TOMLValue?,
      file adjust: (Value, TOMLDocument) -> Value = { value, _ in value }
    ) throws(ConfigurationError) -> Setting<Value>? {
      if let flag { return try read(flag, form, .flag("--\(key.rawValue)")) }
      let variable = "STEPCTL_\(key.rawValue.uppercased())"
      if let text = environment[variable], !text.isEmpty { return try read(.string(text), form, .variable(variable)) }
      for file in files {
        guard let value = try file.optional(key, form) else { continue }
        let path = folders.displayed(file.document.path)
        return Setting(adjust(value, file.document), .file(path, line: file.line(of: key) ?? 0))
      }
      return nil
    }

    private func read<Value>(
      _ value: TOMLValue, _ form: TOMLForm<Value>, _ origin: SettingOrigin
    ) throws(ConfigurationError) -> Setting<Value> {
      guard let result = form.read(value) else {
        throw origin.error("expected \(form.expectation), found \(form.describe(value))")
      }
      return Setting(result, origin)
    }
  }

  /// Whether a vehicle is given as a file and not by name.
  fileprivate static func isPath(_ text: String) -> Bool { text.contains("/") || text.hasSuffix(".toml") }
}

extension Settings {
  private static func file(in folder: String) -> String { folder + (folder.hasSuffix("/") ? "" : "/") + "vehicle.toml" }

  /// The path of the vehicle file: the given file, the file of the given name, or the only one. The name is the user's
  /// for it, a folder's, or the vehicle's own.
  ///
  /// - Parameter isMeant: whether a file is probably the wanted one. If several are known, it decides if it is true for
  ///   exactly one.
  /// - Throws: if there is no file of that name; or if no name was given and there is not exactly one.
  package func vehicleFile(among isMeant: (_ path: String) -> Bool = { _ in false }) throws -> String {
    if let given = vehicle.value {
      // `provision vehicle` and `provision token` make folders.
      if Self.isPath(given), Files.isFolder(given) { return Self.file(in: given) }
      if Self.isPath(given) || Files.exists(given) && !Files.isFolder(given) { return given }
    }
    let vehicles = try folders.vehicles()
    guard let given = vehicle.value else {
      switch vehicles.count {
      case 1: return vehicles[0].path
      case 0:
        let folders = folders.vehicleFolders.map(folders.displayed)
        throw ConfigurationError(
          "vehicle", "not given, and none is in \(alternatives(folders))",
          hint: self.folders.sudoer.map {
            "with sudo, ~ is root's: leave sudo out, or name \($0)'s vehicle by --vehicle"
          }
            ?? "import what your operator gave you with `stepctl config import`, or use --vehicle", kind: .missing)
      default:
        let meant = vehicles.filter { isMeant($0.path) }
        if meant.count == 1 { return meant[0].path }
        let names = vehicles.map(\.name)
        throw ConfigurationError(
          "vehicle", "not given, and there are several",
          hint: "use --vehicle \(alternatives(names.map(shellWord)))")
      }
    }
    if let named = vehicles.first(where: { $0.name == given }) { return named.path }
    let places = folders.vehicleFolders.map { folders.displayed("\($0)/\(given).toml") }
    let inFolder = Self.file(in: given)
    if Files.exists(inFolder) { return inFolder }
    if let called = try folders.vehicle(called: given) { return called }
    if let called = try ConfigurationFolders.vehicle(called: given, in: ".") { return called }
    let meant = Spelling.nearest(to: given, among: vehicles.map(\.name)).map { "did you mean \(TOMLText.quoted($0))?" }
    let hint =
      Side(rawValue: given) == nil
      ? meant ?? "`stepctl config list` lists those you know" : "\(given) is a side: leave it out, or name the vehicle"
    throw vehicle.origin.error(
      "no vehicle \(TOMLText.quoted(given)): there is no \(alternatives(places))", hint: hint, kind: .missing)
  }
}

extension TOMLForm<Double> {
  /// Seconds: a number, or a length of time as people type it.
  fileprivate static var timeout: TOMLForm {
    TOMLForm(expectation: "0.1 s to 1 h, as 10, 10s or 2m") {
      let time: Double? =
        switch $0 {
        case .integer(let value): Double(value)
        case .float(let value): value
        case .string(let text): seconds(typed: text)
        default: nil
        }
      return time.flatMap { (0.1...3600).contains($0) ? $0 : nil }
    }
  }
}

/// A value and its source.
package struct Setting<Value: Sendable>: Sendable {
  package let value: Value
  package let origin: SettingOrigin

  package init(_ value: Value, _ origin: SettingOrigin) {
    self.value = value
    self.origin = origin
  }
}

extension Setting: Equatable where Value: Equatable {}

/// The source of a setting.
package enum SettingOrigin: Equatable, Sendable, CustomStringConvertible {
  case flag(String)
  case variable(String)
  /// The file as people write it, with `~` for their home.
  case file(String, line: Int)
  /// None of the other sources.
  case standard

  /// `flag --vehicle`, `STEPCTL_VEHICLE`, `~/.config/stepctl/config.toml:3`, `default`.
  package var description: String {
    switch self {
    case .flag(let name): "flag \(name)"
    case .variable(let name): name
    case .file(let path, let line): "\(path):\(line)"
    case .standard: "default"
    }
  }

  /// An error about the value from this source.
  package func error(
    _ message: String, hint: String? = nil, kind: ConfigurationError.Kind = .invalid
  ) -> ConfigurationError {
    switch self {
    case .flag(let name): ConfigurationError(name, message, hint: hint, kind: kind == .invalid ? .usage : kind)
    case .variable(let name): ConfigurationError(name, message, hint: hint, kind: kind)
    case .file(let path, let line): ConfigurationError(path, line: line, message, hint: hint, kind: kind)
    case .standard: ConfigurationError("default", message, hint: hint, kind: kind)
    }
  }
}
