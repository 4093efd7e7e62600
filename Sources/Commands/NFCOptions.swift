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
  /// The reader's connection string, checked; nil where libnfc is to choose.
  ///
  /// - Throws: `ConfigurationError`, naming whoever said what is no connection string.
  func reader() throws -> String? {
    guard let text = nfc.value else { return nil }
    do throws(NFCError) {
      try NFCReader.check(connection: text)
    } catch {
      guard case .malformedConnection(_, let reason) = error else { throw error }
      throw nfc.origin.error(reason)
    }
    return text
  }

  /// Opens the reader.
  func openReader(_ interruption: Interruption) throws -> NFCReader {
    try NFCReader(reader(), interruption: interruption)
  }
}
