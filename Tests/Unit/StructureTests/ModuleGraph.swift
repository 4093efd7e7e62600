/// The package as its manifest and its files show it: which folder a target has, what it names, what it imports.
struct ModuleGraph: Equatable {
  var targets: [Target]

  struct Target: Equatable {
    var name: String
    /// From the package's top folder.
    var path: String
    /// The targets and products that the manifest names for it.
    var dependencies: Set<String> = []
    var imports: Set<Import> = []

    /// What `import` calls it.
    var module: String { String(name.map { $0 == "-" ? "_" : $0 }) }
    var isTest: Bool { path.hasPrefix("Tests/") }
  }

  /// An `import` line.
  struct Import: Hashable {
    var module: String
    /// The one declaration that it brings in: `pow` of `import func Glibc.pow`.
    var declaration: String?
    /// From the package's top folder.
    var file = ""

    init(_ module: String, declaration: String? = nil, file: String = "") {
      (self.module, self.declaration, self.file) = (module, declaration, file)
    }

    /// - Returns: nil for a line that imports nothing.
    init?(line: Substring, file: String = "") {
      var words = line.split(whereSeparator: \.isWhitespace).drop {
        $0.hasPrefix("@") && !$0.contains("\"")
          || ["public", "package", "internal", "fileprivate", "private"].contains($0)
      }
      guard words.popFirst() == "import", var name = words.popFirst() else { return nil }
      let kinds: Set = ["class", "enum", "func", "let", "protocol", "struct", "typealias", "var"]
      let isScoped = kinds.contains(String(name))
      if isScoped, let scoped = words.popFirst() { name = scoped }
      let path = name.split(separator: ".").map(String.init)
      self.init(path[0], declaration: isScoped ? path.last : nil, file: file)
    }
  }

  /// A group of targets that changes for one reason, and how far up it stands. Arrows run from higher to lower.
  struct Room: Equatable {
    let folder: String
    let height: Int
    /// Whether its targets may import one another.
    var isShared = false
  }

  /// Rooms of one height do not know of each other: so Rider, Vehicle and Operator do not. A folder that stands in
  /// another comes first.
  static let rooms = [
    Room(folder: "Sources/Core", height: 0, isShared: true),
    // What Core calls of it computes. Its one importer makes no call that does more.
    Room(folder: "Sources/Libraries/CLibcrypto", height: -1),
    Room(folder: "Sources/Libraries", height: 1),
    Room(folder: "Sources/SystemIO", height: 2),
    Room(folder: "Sources/Adapters", height: 3),
    Room(folder: "Sources/FileFormats", height: 4),
    Room(folder: "Sources/UserSettings", height: 5),
    // The console knows no side, and no side knows the console.
    Room(folder: "Sources/Terminal", height: 5),
    Room(folder: "Sources/Vehicle", height: 6, isShared: true),
    Room(folder: "Sources/Rider", height: 7),
    Room(folder: "Sources/Operator", height: 7),
    Room(folder: "Sources/Commands", height: 8, isShared: true),
    Room(folder: "Sources/Programs", height: 9),
  ]

  /// Arrows that would run downward, and still must not be: a side that another one would contain.
  static let forbidden: [(from: String, to: String)] = [
    ("Sources/Rider", "Sources/Vehicle"), ("Sources/Vehicle", "Sources/Rider"), ("Sources/Rider", "Sources/Operator"),
    ("Sources/Vehicle", "Sources/Operator"),
    // An operator writes stepd.toml, so it knows that file, and the values in it; it drives no step.
    ("Sources/Operator", "Sources/Vehicle/StepDaemon"),
    ("Sources/Vehicle", "Sources/Terminal"), ("Sources/Rider", "Sources/Terminal"),
    ("Sources/Operator", "Sources/Terminal"),
    // What decides reads no file.
    ("Sources/Vehicle/StepController", "Sources/FileFormats"),
    ("Sources/Vehicle/StepController", "Sources/SystemIO"), ("Sources/Vehicle/StepController", "Sources/Adapters"),
    ("Sources/Vehicle/StepController", "Sources/Vehicle/StepdConfiguration"),
    // A rider's program has none of the operator's commands.
    ("Sources/Commands/RiderCommands", "Sources/Operator"),
    ("Sources/Commands/RiderCommands", "Sources/Commands/OperatorCommands"),
    ("Sources/Commands/RiderCommands", "Sources/Vehicle"), ("Sources/Commands/CommandParts", "Sources/Operator"),
    ("Sources/Commands/CommandParts", "Sources/Rider"), ("Sources/Commands/CommandParts", "Sources/Vehicle"),
  ]

  /// Modules of other packages that only some rooms may import.
  static let only = ["ArgumentParser": ["Sources/Terminal", "Sources/Commands", "Sources/Programs"]]

  /// What the compiler brings along, which no manifest names.
  static let toolchain: Set = [
    "Dispatch", "Foundation", "FoundationEssentials", "Glibc", "Swift", "Synchronization", "Testing",
  ]

  /// What a program links and nothing calls.
  static let linkedOnly: Set = ["CNoTasks"]

  /// What Core may take from modules that can do input and output, too: mathematics.
  static let pure = [
    "Glibc": ["atan2", "cos", "erfc", "exp", "hypot", "log", "log10", "pow", "sin", "sqrt"] as Set,
    "FoundationEssentials": [],
    "Synchronization": [],
    "Dispatch": [],
    "Foundation": [],
  ]

  enum Violation: Hashable, CustomStringConvertible {
    /// A file imports a module that the manifest does not name for its target.
    case undeclared(Import, in: String)
    /// The manifest names a module that no file of the target imports.
    case unused(String, in: String)
    /// An arrow that does not run downward.
    case upward(from: String, to: String)
    /// Core imports something that can do input and output.
    case impure(Import, in: String)
    /// A program imports Foundation, or its essentials, which make its start slow and its file big.
    case heavy(Import, in: String)
    /// A C library without exactly one importer.
    case importers(of: String, [String])
    /// A target whose folder is in no room.
    case homeless(String)
    /// A module whose folder has another name.
    case misnamed(String, folder: String)

    var description: String {
      switch self {
      case .undeclared(let line, let target):
        "\(line.file) imports \(line.module), which Package.swift does not name for \(target)"
      case .unused(let name, let target): "Package.swift names \(name) for \(target), which does not import it"
      case .upward(let target, let other): "\(target) may not import \(other): arrows run downward only"
      case .impure(let line, let target):
        "\(line.file): \(target) may import from \(line.module) only what does no input or output, one by one"
      case .heavy(let line, _): "\(line.file) imports \(line.module), which a program takes too long to load"
      case .importers(let library, []): "nothing imports \(library)"
      case .importers(let library, let targets):
        "\(library) is imported by \(targets.joined(separator: ", ")): one owns a C library"
      case .misnamed(let target, let folder): "\(target) is in \(folder): module and folder have one name"
      case .homeless(let target): "\(target) is in no room: give it a folder of one, or add a room to the test"
      }
    }
  }

  /// What breaks the rules of the house.
  func violations() -> Set<Violation> {
    let byModule = Dictionary(uniqueKeysWithValues: targets.map { ($0.module, $0) })
    let byName = Dictionary(uniqueKeysWithValues: targets.map { ($0.name, $0) })
    var found: Set<Violation> = []
    for target in targets {
      let own = target.imports.filter { !Self.toolchain.contains($0.module) }
      for line in own where !target.dependencies.contains(byModule[line.module]?.name ?? line.module) {
        found.insert(.undeclared(line, in: target.name))
      }
      let imported = Set(own.map { byModule[$0.module]?.name ?? $0.module })
      // The support for tests is given to each of them.
      for name in target.dependencies.subtracting(imported).subtracting(Self.linkedOnly)
      where byName[name]?.path != "Tests/Support" {
        found.insert(.unused(name, in: target.name))
      }
      guard !target.isTest else { continue }
      guard let room = target.room else {
        found.insert(.homeless(target.name))
        continue
      }
      let folder = target.path.split(separator: "/").last.map(String.init) ?? ""
      if folder != target.name { found.insert(.misnamed(target.name, folder: target.path)) }
      for name in target.dependencies.union(imported) where name != target.name {
        if let other = byName[name] {
          guard let below = other.room, below == room ? room.isShared : below.height < room.height,
            !Self.forbidden.contains(where: { target.isIn($0.from) && other.isIn($0.to) })
          else {
            found.insert(.upward(from: target.name, to: name))
            continue
          }
        } else if let rooms = Self.only[name], !rooms.contains(room.folder) {
          found.insert(.upward(from: target.name, to: name))
        }
      }
      for line in target.imports {
        if line.module.hasPrefix("Foundation") { found.insert(.heavy(line, in: target.name)) }
        if room.height == 0, let pure = Self.pure[line.module], !pure.contains(line.declaration ?? "") {
          found.insert(.impure(line, in: target.name))
        }
      }
    }
    for library in targets where library.path.hasPrefix("Sources/Libraries/") && !Self.linkedOnly.contains(library.name)
    {
      let importers = targets.filter { $0.imports.contains { $0.module == library.module } }
      if importers.count != 1 { found.insert(.importers(of: library.name, importers.map(\.name).sorted())) }
    }
    return found
  }
}

extension ModuleGraph.Target {
  func isIn(_ folder: String) -> Bool { path == folder || path.hasPrefix(folder + "/") }

  var room: ModuleGraph.Room? { ModuleGraph.rooms.first { path == $0.folder || path.hasPrefix($0.folder + "/") } }
}
