import Foundation
import TestSupport

/// The keys that a table of a configuration file may have: an enum of Sources that conforms to TOMLKey.
struct KeyEnum {
  /// `ControllerFile.PolicyKey`
  let name: String
  let keys: Set<String>

  /// All of them, read from their source.
  static func all() throws -> [KeyEnum] {
    let folder = URL(filePath: "\(Repository.root)/Sources")
    let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)!
    var found: [KeyEnum] = []
    for case let file as URL in files where file.pathExtension == "swift" {
      found += Self.all(in: try String(contentsOf: file, encoding: .utf8))
    }
    return found
  }

  private static func all(in source: String) -> [KeyEnum] {
    let type = /^(?:package |private |fileprivate |final )*(?:struct|class|enum|extension) (\w+)/
    let keyEnum = /^ *(?:\w+ )?enum (\w+): String, (?:\w+, )*TOMLKey \{/
    var found: [KeyEnum] = []
    var owner = ""
    var current: (name: String, keys: Set<String>)?
    for line in source.split(separator: "\n") {
      if let match = line.firstMatch(of: type) { owner = String(match.1) }
      if let match = line.firstMatch(of: keyEnum) {
        current = ("\(owner).\(match.1)", [])
      } else if let (name, keys) = current {
        if let match = line.firstMatch(of: /^ +case (.+)$/) {
          let written = match.1.split(separator: ",").map { part in
            let sides = part.split(separator: "=").map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " `\"")) }
            return sides[sides.count - 1]
          }
          current = (name, keys.union(written))
        } else if line.contains("}") {
          found.append(KeyEnum(name: name, keys: keys))
          current = nil
        }
      }
    }
    return found
  }
}
