import Foundation
import TestSupport
import Testing

@Suite("Completion scripts") struct CompletionTests {
  /// The names under which each shell looks for them.
  static let scripts = ["stepctl", "stepd"].flatMap { program in
    [
      Script(program: program, shell: "bash", file: "\(program).bash"),
      Script(program: program, shell: "zsh", file: "_\(program)"),
      Script(program: program, shell: "fish", file: "\(program).fish"),
    ]
  }

  struct Script: CustomTestStringConvertible {
    let program: String
    let shell: String
    let file: String
    var testDescription: String { file }
  }

  @Test("are what the programs generate: `make completions` writes them anew", arguments: scripts)
  func areCurrent(_ script: Script) throws {
    let outcome = try Subprocess.run(product: script.program, ["--generate-completion-script", script.shell])
    try #require(outcome.status == 0, "\(outcome.errors)")
    #expect(try Repository.text("completions/\(script.file)") == outcome.output)
  }

  @Test("are all that is in their folder")
  func complete() throws {
    #expect(try Repository.names(in: "completions") == Self.scripts.map(\.file).sorted())
  }
}
