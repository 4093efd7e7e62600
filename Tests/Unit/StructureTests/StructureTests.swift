import Encoding
import FoundationEssentials
import TestSupport
import Testing

/// SwiftPM lets a file import a module that its target does not name, once that module was built. These tests do not.
@Suite("Structure") struct StructureTests {
  @Test("the package keeps the rules of its house", .timeLimit(.minutes(20)))
  func house() throws {
    let graph = try ModuleGraph(package: Repository.root)
    #expect(graph.targets.count > 20)
    #expect(graph.targets.reduce(0) { $0 + $1.imports.count } > 500)
    for violation in graph.violations().map(\.description).sorted() { Issue.record("\(violation)") }
  }

  /// A small house without a fault.
  static let sound = ModuleGraph(targets: [
    .init(name: "Words", path: "Sources/Core/Words", imports: [.init("Glibc", declaration: "pow")]),
    .init(name: "CLibcrypto", path: "Sources/Libraries/CLibcrypto"),
    .init(
      name: "Sums", path: "Sources/Core/Sums", dependencies: ["Words", "CLibcrypto"],
      imports: [.init("Words"), .init("CLibcrypto")]),
    .init(name: "CRadio", path: "Sources/Libraries/CRadio"),
    .init(
      name: "Kernel", path: "Sources/SystemIO/Kernel", dependencies: ["Words"],
      imports: [.init("Words"), .init("Glibc")]),
    .init(
      name: "Radio", path: "Sources/Adapters/Radio", dependencies: ["Kernel", "CRadio"],
      imports: [.init("Kernel"), .init("CRadio")]),
    .init(name: "Broker", path: "Sources/Adapters/Broker", dependencies: ["Kernel"], imports: [.init("Kernel")]),
    .init(name: "Rider", path: "Sources/Rider", dependencies: ["Broker"], imports: [.init("Broker")]),
    .init(name: "Machine", path: "Sources/Vehicle/Machine", dependencies: ["Sums"], imports: [.init("Sums")]),
    .init(
      name: "StepDaemon", path: "Sources/Vehicle/StepDaemon", dependencies: ["Machine"], imports: [.init("Machine")]),
    .init(name: "Operator", path: "Sources/Operator", dependencies: ["Machine"], imports: [.init("Machine")]),
    .init(
      name: "Console", path: "Sources/Terminal/Console", dependencies: ["Words", "ArgumentParser"],
      imports: [.init("Words"), .init("ArgumentParser")]),
    .init(
      name: "RiderCommands", path: "Sources/Commands/RiderCommands", dependencies: ["Rider"], imports: [.init("Rider")]),
    .init(
      name: "the-program", path: "Sources/Programs/the-program", dependencies: ["Rider", "Console"],
      imports: [.init("Rider"), .init("Console")]),
    .init(name: "Support", path: "Tests/Support", dependencies: ["Kernel"], imports: [.init("Kernel")]),
    .init(
      name: "ProgramTests", path: "Tests/Unit/ProgramTests", dependencies: ["the-program", "Support"],
      imports: [.init("the_program"), .init("Foundation"), .init("Testing")]),
  ])

  @Test("a house without a fault has no violation")
  func nothing() { #expect(Self.sound.violations() == []) }

  struct Fault: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let target: String
    var path: String?
    var names: String?
    var imports: ModuleGraph.Import?
    let expected: Set<ModuleGraph.Violation>
  }

  /// A target that names a module and imports it.
  static func arrow(_ what: String, from target: String, to other: String) -> Fault {
    Fault(
      testDescription: what, target: target, names: other, imports: .init(other),
      expected: [.upward(from: target, to: other)])
  }

  static let faults = [
    Fault(
      testDescription: "an import that the manifest does not name", target: "Rider", imports: .init("Words"),
      expected: [.undeclared(.init("Words"), in: "Rider")]),
    Fault(
      testDescription: "a test's import that the manifest does not name", target: "ProgramTests",
      imports: .init("Words"), expected: [.undeclared(.init("Words"), in: "ProgramTests")]),
    Fault(
      testDescription: "a dependency that no file imports", target: "Rider", names: "Words",
      expected: [.unused("Words", in: "Rider")]),
    Fault(
      testDescription: "a product that no file imports", target: "Console", names: "Crypto",
      expected: [.unused("Crypto", in: "Console")]),
    arrow("Core that imports the system", from: "Sums", to: "Kernel"),
    Fault(
      testDescription: "Core that imports a C library", target: "Sums", names: "CRadio", imports: .init("CRadio"),
      expected: [.upward(from: "Sums", to: "CRadio"), .importers(of: "CRadio", ["Radio", "Sums"])]),
    Fault(
      testDescription: "a second importer of Core's C library", target: "Broker", names: "CLibcrypto",
      imports: .init("CLibcrypto"), expected: [.importers(of: "CLibcrypto", ["Broker", "Sums"])]),
    arrow("an adapter that imports the rider's side", from: "Radio", to: "Rider"),
    arrow("an adapter that imports another", from: "Radio", to: "Broker"),
    arrow("the rider's side that imports the vehicle's", from: "Rider", to: "Machine"),
    arrow("the vehicle's side that imports the rider's", from: "Machine", to: "Rider"),
    arrow("the rider's side that imports the operator's", from: "Rider", to: "Operator"),
    arrow("the operator's side that imports the rider's", from: "Operator", to: "Rider"),
    arrow("the vehicle's side that imports the operator's", from: "StepDaemon", to: "Operator"),
    arrow("an operator that drives a step", from: "Operator", to: "StepDaemon"),
    arrow("a console that knows a side", from: "Console", to: "Rider"),
    arrow("an operator that prints", from: "Operator", to: "Console"),
    arrow("a vehicle that prints", from: "StepDaemon", to: "Console"),
    arrow("a rider that prints", from: "Rider", to: "Console"),
    arrow("a rider's command that has the certificate authority", from: "RiderCommands", to: "Operator"),
    Fault(
      testDescription: "a module whose folder has another name", target: "Machine", path: "Sources/Vehicle/Engine",
      expected: [.misnamed("Machine", folder: "Sources/Vehicle/Engine")]),
    arrow("arguments below the command line", from: "Rider", to: "ArgumentParser"),
    Fault(
      testDescription: "an upward arrow that is only in the manifest", target: "Radio", names: "Rider",
      expected: [.upward(from: "Radio", to: "Rider"), .unused("Rider", in: "Radio")]),
    Fault(
      testDescription: "a second importer of a C library", target: "Broker", names: "CRadio", imports: .init("CRadio"),
      expected: [.importers(of: "CRadio", ["Broker", "Radio"])]),
    Fault(
      testDescription: "a test that imports a C library", target: "ProgramTests", names: "CRadio",
      imports: .init("CRadio"), expected: [.importers(of: "CRadio", ["ProgramTests", "Radio"])]),
    Fault(
      testDescription: "Core that imports all of the C library", target: "Sums", imports: .init("Glibc"),
      expected: [.impure(.init("Glibc"), in: "Sums")]),
    Fault(
      testDescription: "Core that imports a function that reads a file", target: "Sums",
      imports: .init("Glibc", declaration: "fopen"),
      expected: [.impure(.init("Glibc", declaration: "fopen"), in: "Sums")]),
    Fault(
      testDescription: "a program that imports Foundation", target: "Radio", imports: .init("Foundation"),
      expected: [.heavy(.init("Foundation"), in: "Radio")]),
    Fault(
      testDescription: "a program that imports Foundation's essentials", target: "Radio",
      imports: .init("FoundationEssentials"),
      expected: [.heavy(.init("FoundationEssentials"), in: "Radio")]),
    Fault(
      testDescription: "a folder that is in no room", target: "Radio", path: "Sources/Attic",
      expected: [.homeless("Radio")]),
  ]

  @Test("each fault is found, and nothing else", arguments: faults)
  func finds(_ fault: Fault) throws {
    var house = Self.sound
    let index = try #require(house.targets.firstIndex { $0.name == fault.target })
    if let path = fault.path { house.targets[index].path = path }
    if let name = fault.names { house.targets[index].dependencies.insert(name) }
    if let line = fault.imports { house.targets[index].imports.insert(line) }
    #expect(house.violations() == fault.expected)
  }

  @Test(
    "an import line is read in every form",
    arguments: [
      ("import Words", ModuleGraph.Import("Words")),
      ("  package import Words", .init("Words")),
      ("@testable import stepctl_qr", .init("stepctl_qr")),
      ("@preconcurrency public import Words", .init("Words")),
      ("import func Glibc.pow", .init("Glibc", declaration: "pow")),
      ("private import struct Words.Word", .init("Words", declaration: "Word")),
      ("import Words.Inner", .init("Words")),
      ("// import Words", nil),
      ("let import = Words", nil),
      ("  @Test(\"config import prints\")", nil),
      ("", nil),
    ] as [(Substring, ModuleGraph.Import?)])
  func lines(_ line: Substring, _ expected: ModuleGraph.Import?) {
    #expect(ModuleGraph.Import(line: line) == expected)
  }
}

extension ModuleGraph {
  /// Reads the manifest with SwiftPM, and the `import` lines of each source file.
  init(package root: String) throws {
    let manifest = try Self.manifest(of: root)
    var targets: [Target] = []
    for target in try #require(manifest["targets"]?.array) {
      let name = try #require(target["name"]?.string)
      let path = try #require(target["path"]?.string)
      var dependencies: Set<String> = []
      for dependency in target["dependencies"]?.array ?? [] {
        let kinds = ["byName", "product", "target"]
        let named = kinds.lazy.compactMap { dependency[$0]?.array?.first?.string }.first
        dependencies.insert(try #require(named))
      }
      targets.append(
        Target(name: name, path: path, dependencies: dependencies, imports: try Self.imports(in: path, of: root)))
    }
    self.init(targets: targets)
  }

  /// What `swift package dump-package` prints. Its own scratch folder: `swift test` may hold the lock on the usual one.
  private static func manifest(of root: String) throws -> JSON {
    let folder = try TemporaryFolder()
    let ended = try Subprocess.run(
      ["swift", "package", "--scratch-path", folder.path, "--package-path", root, "dump-package"],
      // The targets that are only there when asked for have to keep the rules, too.
      environment: ["STEPCTL_FUZZ": "1", "STEPCTL_BENCH": "1"])
    try #require(ended.status == 0, "\(ended.errors)")
    return try JSON(parsing: Array(ended.output.utf8), maximumDepth: 32)
  }

  private static func imports(in folder: String, of root: String) throws -> Set<Import> {
    let files = try FileManager.default.subpathsOfDirectory(atPath: "\(root)/\(folder)")
    var imports: Set<Import> = []
    for name in files where name.hasSuffix(".swift") {
      var isText = false
      for line in try Repository.text("\(folder)/\(name)").split(separator: "\n") {
        // Another language's program may stand in a literal.
        if !line.split(separator: "\"\"\"", omittingEmptySubsequences: false).count.isMultiple(of: 2) {
          if !isText, let found = Import(line: line, file: "\(folder)/\(name)") { imports.insert(found) }
        } else {
          isText.toggle()
        }
      }
    }
    return imports
  }
}
