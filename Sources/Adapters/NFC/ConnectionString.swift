/// Where libnfc finds a reader: `DRIVER[:PORT[:SPEED]]`.
///
/// Which drivers there are is libnfc's business. What is read here is what can be looked at before.
struct ConnectionString: Equatable {
  let text: String
  /// The device file of the port, where the reader has one.
  let path: String?
  /// Bauds, where the port is a serial line.
  let speed: Int?

  private static let serialDrivers = ["pn532_uart", "arygon", "acr122s"]
  /// Those that libnfc can set.
  static let speeds = [9600, 19200, 38400, 57600, 115_200, 230_400, 460_800]

  init(_ text: String) throws(NFCError) {
    func malformed(_ reason: String) -> NFCError { .malformedConnection(text, reason: reason) }
    // nfc-types.h: NFC_BUFSIZE_CONNSTRING, with the NUL.
    guard text.utf8.count < 1024 else { throw malformed("longer than 1023 bytes") }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard !parts[0].isEmpty, text.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7F }) else {
      throw malformed("expected DRIVER:PORT, as pn532_uart:/dev/ttyUSB0")
    }
    let port = parts.count > 1 ? parts[1] : ""
    self.text = text
    if Self.serialDrivers.contains(parts[0]) {
      guard !port.isEmpty else { throw malformed("the port is missing, as in \(parts[0]):/dev/ttyUSB0") }
      path = port
      guard parts.count > 2 else {
        // The default of pn532_uart; the other drivers have 9600.
        speed = parts[0] == "pn532_uart" ? 115_200 : 9600
        return
      }
      guard let number = Int(parts[2]), Self.speeds.contains(number) else {
        let known = Self.speeds.map(String.init).joined(separator: ", ")
        throw malformed("the speed must be one of \(known)")
      }
      speed = number
    } else {
      path = port.hasPrefix("/") ? port : nil
      speed = nil
    }
  }

  /// Whether a PN532 is at the other end of a serial line, which can be asked for a sign of life without libnfc.
  var isPN532OnSerialLine: Bool { text.hasPrefix("pn532_uart:") }
}
