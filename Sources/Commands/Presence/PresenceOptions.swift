import ArgumentParser
import Bluetooth
import CodeReading
import Configuration
import Domain
import Encoding
import NFC
import Rider
import SystemIO
import Terminal

/// How to find out where the rider is.
enum MethodChoice: String, ExpressibleByArgument, CaseIterable {
  case auto, beacon, nfc, qr
}

/// How to find out where the rider is, and with what.
struct PresenceOptions: ParsableArguments {
  @Option(help: ArgumentHelp("How to find out where you are.", valueName: "method"))
  var by: MethodChoice = .auto

  @OptionGroup var radio: RadioOptions
  @OptionGroup var reader: NFCOptions
  @OptionGroup var codes: QROptions
  @OptionGroup var timeout: TimeoutOptions

  func settings(_ context: Context, vehicle: String?) throws -> Settings {
    try context.settings(vehicle: vehicle, radio: radio.radio, nfc: reader.nfc, timeout: timeout.timeout)
  }

  /// The searches that were chosen, or all those that can be made with what was named.
  ///
  /// - Parameter recording: the path of a new file that keeps what the radio hears.
  func searches(_ vehicle: Vehicle, _ settings: Settings, recording: String? = nil) throws -> [any StepSearch] {
    func beacons() throws -> any StepSearch {
      BeaconSearch(vehicle, radio: try settings.radioSpec(), limit: settings.timeout.value, recording: recording)
    }
    func tag() throws -> any StepSearch {
      TagSearch(vehicle, reader: try settings.reader(), limit: settings.timeout.value)
    }
    func code() throws -> any StepSearch {
      guard let source = codes.qr else {
        throw CommandFailure(.usage, "--by qr needs --qr, which says where to look: a picture, - or a camera")
      }
      return CodeSearch(vehicle, source: source, patience: settings.patience)
    }
    return switch by {
    case .beacon: [try beacons()]
    case .nfc: [try tag()]
    case .qr: [try code()]
    case .auto:
      [try beacons()] + (codes.qr != nil ? [try code()] : []) + (settings.nfc.value != nil ? [try tag()] : [])
    }
  }
}
