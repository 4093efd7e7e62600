import ArgumentParser
import Configuration
import NFC
import SystemIO

/// With what to read and write tags.
struct NFCOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The NFC reader, as libnfc names it: pn532_uart:/dev/ttyUSB0 (default: libnfc's own).",
      valueName: "connstring"),
    completion: .list(["pn532_uart:/dev/ttyUSB0", "pn532_i2c:/dev/i2c-1", "pn532_spi:/dev/spidev0.0", "pn53x_usb"]))
  var nfc: String?
}

extension Settings {
  /// - Throws: `NFCError`, or `ConfigurationError`, naming whoever said what is no connection string.
  func openReader(_ interruption: Interruption) throws -> NFCReader {
    do throws(NFCError) {
      return try NFCReader(nfc.value, interruption: interruption)
    } catch {
      guard case .malformedConnection(_, let reason) = error, nfc.value != nil else { throw error }
      throw nfc.origin.error(reason)
    }
  }
}
