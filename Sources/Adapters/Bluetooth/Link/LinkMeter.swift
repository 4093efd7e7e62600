import Encoding

/// Measures how strong connections are at an adapter of this machine. It takes no privilege.
package struct LinkMeter: Sendable {
  /// How long the controller may take: the links wait meanwhile.
  private static let patience = Duration.milliseconds(200)

  private let adapter: UInt16

  /// - Parameter adapter: the number in `hci0`.
  package init(adapter: UInt16) { self.adapter = adapter }

  /// The level of the last packet of a connection, dBm (Read RSSI: Core 5.4, Vol 4, Part E, 7.5.4).
  ///
  /// The kernel gives each socket the answers to all programs' commands. So each measurement has a socket of its own,
  /// in which no earlier answer waits, and takes no answer about another connection.
  ///
  /// - Parameter handle: the kernel's number of the connection.
  /// - Returns: nil if it cannot be measured.
  package func level(of handle: UInt16) -> Int8? {
    guard let socket = try? HCISocket(adapter: adapter, hears: false),
      let answer = try? HCIController(socket).request(
        HCICommand("Read RSSI", 0x1405, handle.littleEndianBytes), timeout: Self.patience, nil),
      answer.count >= 3, answer.prefix(2).elementsEqual(handle.littleEndianBytes)
    else { return nil }
    let level = Int8(bitPattern: answer[answer.startIndex + 2])
    return level == 127 ? nil : level
  }
}
