import Testing

@testable import NFC

@Suite("Connection strings")
struct ConnectionStringTests {
  @Test("say where the port is, as far as libnfc's drivers do")
  func ports() throws {
    for (text, path, speed) in [
      ("pn532_uart:/dev/ttyUSB0", "/dev/ttyUSB0", 115_200), ("pn532_uart:/dev/ttyS1:57600", "/dev/ttyS1", 57600),
      ("arygon:/dev/ttyUSB0", "/dev/ttyUSB0", 9600), ("pn532_i2c:/dev/i2c-1", "/dev/i2c-1", nil),
      ("pn532_spi:/dev/spidev0.0:500000", "/dev/spidev0.0", nil), ("pn53x_usb:001:002", nil, nil),
      ("pn53x_usb", nil, nil), ("acr122_usb:001:002", nil, nil), ("some_future_driver", nil, nil),
    ] as [(String, String?, Int?)] {
      let connection = try ConnectionString(text)
      #expect(connection.path == path && connection.speed == speed, "\(text)")
    }
  }

  @Test(
    "that cannot be one are refused",
    arguments: [
      "", ":", ":/dev/ttyUSB0", "pn532_uart", "pn532_uart:", "pn532_uart::115200", "pn532_uart:/dev/ttyS0:",
      "pn532_uart:/dev/ttyS0:1", "pn532_uart:/dev/ttyS0:fast", "pn532_uart:/dev/tty\u{1B}", "pn532 uart:/dev/ttyS0",
      String(repeating: "x", count: 1024),
    ])
  func malformed(_ text: String) {
    #expect(throws: NFCError.self) { try ConnectionString(text) }
  }
}
