import Foundation
import TestSupport
import Testing

@Suite("THREATS.md") struct ThreatsTests {
  private let page: String

  init() throws { page = try Repository.text("THREATS.md") }

  @Test("each Swift test that it names is there")
  func swiftTests() throws {
    let folders =
      try Repository.names(in: "Tests/Unit").map { "Tests/Unit/\($0)" }
      + Repository.names(in: "Fleet/Tests").filter { $0.hasSuffix("Tests") }.map { "Fleet/Tests/\($0)" }
    let sources = try folders.flatMap { folder in
      try Repository.names(in: folder).map { try Repository.text("\(folder)/\($0)") }
    }
    let named = page.matches(of: /`([A-Za-z]+Tests)\.([A-Za-z0-9]+)`/)
    #expect(named.count > 20)
    for (_, suite, function) in named.map(\.output) {
      #expect(
        sources.contains { $0.contains("struct \(suite) ") && $0.contains("func \(function)(") },
        "\(suite).\(function)")
    }
  }

  @Test("each Python test that it names is there")
  func pythonTests() throws {
    let named = page.matches(of: /`(Fleet\/)?(test_[a-z_]+\.py)::(test_[a-z0-9_]+)`/)
    #expect(named.count > 10)
    for (_, fleet, file, function) in named.map(\.output) {
      let text = try Repository.text("\(fleet ?? "")Tests/System/\(file)")
      #expect(text.contains("def \(function)("), "\(file)::\(function)")
    }
  }

  @Test("each rule that it says the model checks is left out by one of the model's mutations")
  func mutations() throws {
    let model = try Repository.text("Tests/Model/protocol.pml")
    let checks = try Repository.text("Tests/Model/check.py")
    let named = page.matches(of: /`([A-Z]+(?:_[A-Z]+)+)`/)
    #expect(named.count > 5)
    for (_, mutation) in named.map(\.output) {
      #expect(model.contains(mutation) && checks.contains("\"\(mutation)\""), "\(mutation)")
    }
  }
}
