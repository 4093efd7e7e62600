/// Who decided a setting.
package enum SettingOrigin: Equatable, Sendable, CustomStringConvertible {
  case flag(String)
  case variable(String)
  /// The file as people write it, with `~` for their home.
  case file(String, line: Int)
  /// Nobody.
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

  /// What is wrong with what was said there.
  package func error(_ message: String, kind: ConfigurationError.Kind = .invalid) -> ConfigurationError {
    switch self {
    case .flag(let name): ConfigurationError(name, message, kind: kind == .invalid ? .usage : kind)
    case .variable(let name): ConfigurationError(name, message, kind: kind)
    case .file(let path, let line): ConfigurationError(path, line: line, message, kind: kind)
    case .standard: ConfigurationError("default", message, kind: kind)
    }
  }
}
