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

/// Tells the rider what to do while a search goes on, and what was not found.
struct SearchProgress {
  private let vehicle: Vehicle
  private let console: Console

  init(_ vehicle: Vehicle, _ console: Console) {
    self.vehicle = vehicle
    self.console = console
  }

  func show(_ method: ProofMethod, _ event: SearchEvent) {
    switch event {
    case .note(let note): console.note(note)
    case .decided: break
    case .waiting(let left):
      let request =
        method == .nfc ? "hold the reader to the tag on the step" : "show the code on the step to the camera"
      console.progress.show("\(request), \(Int(left.inSeconds.rounded(.up))) s left")
    case .missed(let result):
      console.note("not located by \(method.device): \(printable(reason(result)))")
    }
  }

  /// Takes the line away, for what is printed next.
  func clear() { console.progress.clear() }

  private func reason(_ result: Result<Finding, any Error>) -> String {
    do {
      return FindingReport(vehicle: vehicle, finding: try result.get(), began: .now).summary
    } catch let error as SightingError {
      return error.reason
    } catch {
      return "\(error)"
    }
  }
}

extension ProofMethod {
  fileprivate var device: String {
    switch self {
    case .beacon: "radio"
    case .nfc: "tag"
    case .qr: "code"
    }
  }
}
