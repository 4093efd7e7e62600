import ArgumentParser
import Bluetooth
import CommandParts
import Rider
import UserSettings

/// How to get to the vehicle.
enum ViaChoice: Equatable, ExpressibleByArgument {
  case auto, network, bluetooth
  /// By Bluetooth, with that adapter.
  case adapter(RadioSpec)

  init?(argument: String) {
    switch argument {
    case "auto": self = .auto
    case "network": self = .network
    case "bluetooth": self = .bluetooth
    default:
      guard let radio = try? RadioSpec(argument), radio.adapter != nil else { return nil }
      self = .adapter(radio)
    }
  }
}

struct ViaOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "How to get to the vehicle: network, bluetooth, an adapter as hci1, or what answers first (default: auto).",
      valueName: "way"),
    completion: .list(["auto", "network", "bluetooth"]))
  var via: ViaChoice?
}

extension Settings {
  /// - Parameters:
  ///   - choice: what was typed; nil for the setting.
  ///   - patience: how long the network has before Bluetooth is tried as well.
  /// - Throws: `ConfigurationError`, which names the source of the setting or of the radio.
  func via(_ choice: ViaChoice?, patience: Duration = .milliseconds(500)) throws -> Via {
    guard let choice = choice ?? ViaChoice(argument: via.value) else {
      throw via.origin.error("expected auto, network, bluetooth or an adapter such as hci1, found \"\(via.value)\"")
    }
    return switch choice {
    case .network: .network
    case .adapter(let radio): .bluetooth(radio)
    case .bluetooth: .bluetooth(try adapter ?? .hci(0))
    case .auto: .auto(try adapter, after: patience)
    }
  }

  /// The radio, if it is an adapter of this computer.
  private var adapter: RadioSpec? {
    get throws {
      let radio = try radioSpec()
      return radio.adapter == nil ? nil : radio
    }
  }
}
