import Encoding

/// Measures how strong connections are at an adapter of this machine. It takes no privilege.
///
/// **Threads.** One thread creates and uses it.
package final class LinkMeter {
  /// How long the controller may take: the links wait meanwhile.
  private static let patience = Duration.milliseconds(200)

  private let adapter: UInt16
  /// Nil after a failure: the adapter may have been away.
  private var controller: HCIController?

  /// - Parameter adapter: the number in `hci0`.
  package init(adapter: UInt16) { self.adapter = adapter }

  /// The level of the last packet of a connection, dBm (Read RSSI: Core 5.4, Vol 4, Part E, 7.5.4).
  ///
  /// - Parameter handle: the kernel's number of the connection.
  /// - Returns: nil if it cannot be measured.
  package func level(of handle: UInt16) -> Int8? {
    do throws(RadioError) {
      if controller == nil { controller = HCIController(try HCISocket(adapter: adapter, hears: false)) }
      let answer = try controller?.request(
        HCICommand("Read RSSI", 0x1405, handle.littleEndianBytes), timeout: Self.patience, nil)
      guard let answer, answer.count >= 3 else { return nil }
      let level = Int8(bitPattern: answer[answer.startIndex + 2])
      return level == 127 ? nil : level
    } catch .refused {
      return nil
    } catch {
      controller = nil
      return nil
    }
  }
}
