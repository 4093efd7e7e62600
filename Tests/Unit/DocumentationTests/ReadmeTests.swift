import Foundation
import TestSupport
import Testing

@Suite("README.md") struct ReadmeTests {
  @Test("is short, and its links lead somewhere")
  func links() throws {
    let text = try Repository.text("README.md")
    #expect(text.split(separator: "\n", omittingEmptySubsequences: false).count <= 170)
    let links = text.matches(of: /\]\(([^)#:]+)\)/).map { String($0.1) }
    #expect(links.count > 10)
    for link in links {
      #expect(FileManager.default.fileExists(atPath: "\(Repository.root)/\(link)"), "\(link)")
    }
  }
}
