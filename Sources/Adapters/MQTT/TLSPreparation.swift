import Synchronization
package import SystemIO

/// The TLS settings of a future connection. A separate thread reads the files and loads OpenSSL, while the program
/// still reads its other files. Nothing is sent, and the connection reports a failure.
package final class TLSPreparation: Sendable {
  /// One thread makes it and another takes it, so the two never use it at the same time.
  private struct Prepared: @unchecked Sendable {
    let context: TLSContext
  }

  private let prepared: Mutex<Meanwhile<Prepared>?>

  /// - Returns: nil for a broker without TLS.
  package init?(for broker: Broker) throws(SystemError) {
    guard let tls = broker.tls else { return nil }
    prepared = Mutex(try Meanwhile { Prepared(context: try TLSContext(tls, broker)) })
  }

  /// The settings, as soon as they are ready. They can be taken only once.
  func take() throws(MQTTError) -> TLSContext? {
    let made = prepared.withLock { made in
      defer { made = nil }
      return made
    }
    // A TLSContext throws nothing else.
    do { return try made?.result().context } catch { throw error as! MQTTError }
  }
}
