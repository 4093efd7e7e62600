import TestSupport
import Testing

@Suite("MOTION.md") struct MotionPageTests {
  @Test("each test that the page names is there")
  func tests() throws {
    let page = try Repository.text("Sources/Vehicle/StepController/MOTION.md")
    let named = page.matches(of: /`([A-Za-z]+Tests)\.([A-Za-z]+)`/)
    #expect(named.count > 40)
    let sources = try ["StepControllerTests", "StepDaemonTests"].flatMap { folder in
      try Repository.names(in: "Tests/Unit/\(folder)").map { try Repository.text("Tests/Unit/\(folder)/\($0)") }
    }
    for name in named {
      let (suite, function) = (name.output.1, name.output.2)
      #expect(
        sources.contains { $0.contains("struct \(suite) ") && $0.contains("func \(function)(") },
        "\(suite).\(function)")
    }
  }
}
