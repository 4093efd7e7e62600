import ArgumentParser
import Configuration
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
}
