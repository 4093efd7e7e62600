/// Files that tests read.
enum Fixtures {
  /// The path of a file below `Tests/Fixtures`.
  static func path(_ name: String, from file: StaticString = #filePath) -> String {
    "\(file)".split(separator: "/", omittingEmptySubsequences: false).dropLast(2).joined(separator: "/")
      + "/Fixtures/\(name)"
  }
}
