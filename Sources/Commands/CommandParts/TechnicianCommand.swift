package import ArgumentParser
import Terminal

/// The commands of technicians and operators. `stepctl` lists them, and starts `stepctl-operator`, which has them: so a
/// rider's computer needs no certificate authority and no traffic feed, and nobody types anything else.
package enum TechnicianCommand: String, CaseIterable, Sendable {
  case calibrate, evaluate, provision
  case `operator`
  case traffic

  package var abstract: String {
    switch self {
    case .calibrate: "Measure how strongly a vehicle's beacons are received, and note it in the vehicle file."
    case .evaluate: "Say how well the steps are found at a site, from captures of known positions."
    case .provision: "Make keys, tokens, tags and codes for vehicles and riders."
    case .operator: "See what was handed out, take it back, and change keys."
    case .traffic: "Run, show, measure and record a traffic feed, and try a guard on it."
    }
  }

  /// What `stepctl help --all` shows of it.
  package var listed: CommandConfiguration { CommandConfiguration(commandName: rawValue, abstract: abstract) }

  /// The command that these words name, behind the options that may stand before a command, and behind `help`.
  package init?(in arguments: [String]) {
    // Most lines have none of the names.
    guard arguments.contains(where: { Self(rawValue: $0) != nil }) else { return nil }
    var words = arguments[...]
    // A shell asks for the values of an argument.
    if words.first == "---completion" { words = words.dropFirst() }
    guard let name = CommandTyped.commandName(in: words), let command = Self(rawValue: name) else { return nil }
    self = command
  }
}
