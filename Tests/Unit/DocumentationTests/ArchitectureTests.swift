import Foundation
import TestSupport
import Testing

@Suite("ARCHITECTURE.md") struct ArchitectureTests {
  /// What a file declares or extends.
  private struct Declarations {
    private(set) var types: Set<String> = []
    private(set) var members: Set<String> = []

    init(in source: String) {
      let words = source.utf8.split { !$0.isIdentifier }.map { String($0)! }
      for (keyword, name) in zip(words, words.dropFirst()) {
        switch keyword {
        case "struct", "class", "enum", "protocol", "typealias", "extension": types.insert(name)
        case "func", "var", "let", "case": members.insert(name)
        default: break
        }
      }
    }

    /// - Parameter name: `Type`, `member` or `Type.member`.
    func contain(_ name: String) -> Bool {
      let parts = name.split(separator: ".").map(String.init)
      let last = parts[parts.count - 1]
      return (parts.count == 1 || types.contains(parts[0])) && (types.contains(last) || members.contains(last))
    }
  }

  @Test("each step of a walk is declared in the sources")
  func walks() throws {
    let page = try Repository.text("ARCHITECTURE.md")
    let walks = page.components(separatedBy: "## Five walks\n")[1].components(separatedBy: "\n## ")[0]
    let chains = walks.split(separator: "\n").filter { $0.hasPrefix("    ") }.map { line in
      // What is behind two spaces is said in words.
      line.dropFirst(4).components(separatedBy: "  ")[0]
    }
    let names = Set(
      walks.matches(of: /`([A-Za-z][A-Za-z.]*)`/).map { String($0.1) }
        + chains.flatMap { $0.matches(of: /[A-Za-z][A-Za-z.]*/).map { String($0.0) } })
    // Words between names, and what is no declaration.
    let others: Set = ["or", "ArgumentParser", "Domain.Failure"]
    #expect(names.count > 60)
    let sources = try FileManager.default.subpathsOfDirectory(atPath: "\(Repository.root)/Sources")
      .filter { $0.hasSuffix(".swift") }.map { Declarations(in: try Repository.text("Sources/\($0)")) }
    for name in names.subtracting(others).sorted() {
      #expect(sources.contains { $0.contain(name) }, "\(name)")
    }
  }
}

extension UInt8 {
  fileprivate var isIdentifier: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
    default: false
    }
  }
}
