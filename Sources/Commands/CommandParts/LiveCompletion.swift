package import ArgumentParser
import Bluetooth
import Domain
import Encoding
import FileFormats
import SystemIO
import UserSettings

/// Values that a shell offers at the cursor, read at that moment: vehicles, steps, riders and adapters.
package enum LiveCompletion {
  package static let radio = kind { _, typed in
    let adapters = Adapter.all().map(\.number)
    let numbers = adapters.isEmpty ? [0] : adapters
    let captures = typed.hasPrefix("btsnoop:") ? paths(typed.dropFirst(8), ending: "").map { "btsnoop:\($0)" } : []
    return numbers.map { "hci\($0)" } + numbers.map { "bluez:hci\($0)" } + ["h4:tcp:", "h4:unix:", "btsnoop:"]
      + captures
  }

  package static let vehicle = kind { _, typed in
    ((try? folders.vehicles()) ?? []).map(\.name) + paths(typed[...], ending: ".toml")
  }

  package static let step = kind { words, _ in steps(words) }

  /// The last item of a comma-separated list.
  package static let steps = kind { words, typed in
    let chosen = typed.split(separator: ",", omittingEmptySubsequences: false).dropLast().map(String.init)
    return steps(words).filter { !chosen.contains($0) }.map { (chosen + [$0]).joined(separator: ",") }
  }

  // MARK: -

  private static var folders: ConfigurationFolders { Context.process.folders }

  /// - Parameter values: receives all words, and the part of the last word before the cursor.
  package static func kind(_ values: @escaping @Sendable ([String], String) -> [String]) -> CompletionKind {
    .custom { words, _, typed in
      let found = values(words, typed).filter { $0.hasPrefix(typed) }
      // zsh takes the text after a colon for a description.
      return CompletionShell.requesting == .zsh ? found.map { $0.substituting(":", by: "\\:") } : found
    }
  }

  private static func steps(_ words: [String]) -> [String] {
    let named = words.lastIndex(of: "--vehicle").flatMap { $0 + 1 < words.count ? words[$0 + 1] : nil }
    let own = folder(words).map { "\($0)/vehicle.toml" }
    let path = own ?? (try? Context.process.settings(vehicle: named).vehicleFile())
    return path.flatMap { try? VehicleFile(reading: $0) }?.vehicle.steps.map(\.id.description) ?? []
  }

  /// The vehicle's or operator's folder that the user has already typed.
  package static func folder(_ words: [String]) -> String? {
    words.dropFirst(3).first { !$0.hasPrefix("-") && Files.isFolder($0) }
  }

  /// Folders, and files of one kind. A shell that gets values from the program offers no files of its own.
  private static func paths(_ typed: Substring, ending: String) -> [String] {
    let folder = typed.lastIndex(of: "/").map { String(typed[...$0]) } ?? ""
    let names = (try? Files.names(in: folder.isEmpty ? "." : folder)) ?? []
    return names.sorted().filter { !$0.hasPrefix(".") }.compactMap { name in
      Files.isFolder(folder + name) ? "\(folder)\(name)/" : name.hasSuffix(ending) ? folder + name : nil
    }
  }
}
