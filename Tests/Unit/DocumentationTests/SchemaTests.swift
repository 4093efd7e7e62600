import Foundation
import TestSupport
import Testing

/// The outputs themselves are held against the schema by the tests of whole programs, each of them.
@Suite("The schema of what is printed") struct SchemaTests {
  @Test("has a definition for each command that prints JSON, and no others")
  func definitions() throws {
    let text = try Repository.text("schema/stepctl.json")
    let schema = try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    let defined = Set(try #require(schema["$defs"] as? [String: Any]).keys)
    let commands = try Command.all.get().filter { command in
      command.path[0] == "stepctl" && (command.arguments ?? []).contains { $0.flags.contains("-json") }
    }
    // Beside the commands: stepctl alone, its version, and what every failure has.
    let others: Set = ["bare", "failure", "version"]
    #expect(defined == Set(commands.map { $0.path.dropFirst().joined(separator: "-") }).union(others))
  }
}
