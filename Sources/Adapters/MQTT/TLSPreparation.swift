import Synchronization
package import SystemIO

/// The TLS settings of a connection that will be made: its files are read, and OpenSSL is loaded, on a thread of their
/// own, while the program still reads what it has to say. Nothing is sent, and a failure is the connection's to tell.
package final class TLSPreparation: Sendable {
  /// One thread makes it and another takes it, so it is never used by both.
  private struct Prepared: @unchecked Sendable {
    let context: TLSContext
  }

  private let prepared: Mutex<Meanwhile<Prepared>?>

  /// - Returns: nil for a broker without TLS.
  package init?(for broker: Broker) throws(SystemError) {
    guard let tls = broker.tls else { return nil }
    prepared = Mutex(try Meanwhile { Prepared(context: try TLSContext(tls, broker)) })
  }

  /// The settings, once, as soon as they are there.
  func take() throws(MQTTError) -> TLSContext? {
    let made = prepared.withLock { made in
      defer { made = nil }
      return made
    }
    do { return try made?.result().context } catch { throw error as! MQTTError }
  }
}
