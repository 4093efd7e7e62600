import CBuild

extension Program {
  /// The version of all programs.
  public static let version = STEPCTL_VERSION

  /// The commit of the build: 12 hexadecimal digits, and `+` if the files were not those of the commit; nil for
  /// a build that is not for use.
  package static var commit: String? { cbuild_commit().map { String(cString: $0) } }

  /// The processor of the build, as Debian names it: `amd64` or `arm64`.
  package static var architecture: String { String(cString: cbuild_architecture()) }
}
