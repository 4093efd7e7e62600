import CBuild

extension Program {
  /// The commit of the build: 12 hexadecimal digits; nil for a build that is not for use.
  package static var commit: String? { cbuild_commit().map { String(String(cString: $0).prefix(12)) } }
}
