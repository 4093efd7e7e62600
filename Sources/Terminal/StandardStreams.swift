import Glibc

/// What a program reads and prints, and the environment that says how: this process's, or a test's substitute.
package struct StandardStreams: Sendable {
  /// For results.
  package var output: any Output
  /// For everything else.
  package var errors: any Output
  package var input: any Input
  package var environment: [String: String]

  package init(output: any Output, errors: any Output, input: any Input, environment: [String: String]) {
    self.output = output
    self.errors = errors
    self.input = input
    self.environment = environment
  }

  /// Those of this process.
  package static var process: StandardStreams {
    StandardStreams(
      output: StandardOutput.results, errors: StandardOutput.messages, input: StandardInput(),
      environment: processEnvironment)
  }

  /// The environment. If a variable is set twice, the first value counts, as with getenv(3).
  private static var processEnvironment: [String: String] {
    var variables: [String: String] = [:]
    var entry = environ
    while let variable = entry.pointee {
      let text = String(cString: variable)
      if let equals = text.firstIndex(of: "=") {
        let name = String(text[..<equals])
        if variables[name] == nil { variables[name] = String(text[text.index(after: equals)...]) }
      }
      entry += 1
    }
    return variables
  }
}
