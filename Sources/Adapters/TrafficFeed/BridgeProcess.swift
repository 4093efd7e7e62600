import Domain
import Encoding
import SystemIO
package import Traffic

/// A bridge. `stepctl-traffic` speaks WebSocket for it, in a separate process.
///
/// - Threads: one thread uses it.
/// - Latency: no call waits, except up to a second for a program that does not read.
/// - Ownership: the program ends with this object.
package final class BridgeProcess {
  /// Its listening address, and the files with its own identity and the trusted authorities.
  package struct Setup: Sendable {
    /// The address of one interface; nil for all.
    package var address: String?
    /// 0 for any free port.
    package var port: UInt16
    /// Certificates of the authorities for clients and publishers.
    package var authorities: String
    package var certificate: String
    package var key: String
    /// The map of the sections; nil if each client gets all frames.
    package var map: String?
    /// The authorities' lists of revoked certificates; nil for none.
    package var revoked: String?

    package init(
      address: String?, port: UInt16, authorities: String, certificate: String, key: String, map: String?,
      revoked: String?
    ) {
      self.address = address
      self.port = port
      self.authorities = authorities
      self.certificate = certificate
      self.key = key
      self.map = map
      self.revoked = revoked
    }
  }

  private let helper: HelperProcess

  package init(_ setup: Setup) throws(BridgeError) {
    do {
      // The library that reads the files does not say which one it cannot read.
      for file in [setup.authorities, setup.certificate, setup.key, setup.revoked] {
        if let file { _ = try Files.readRegular(file) }
      }
    } catch {
      throw .system(error)
    }
    let arguments = [
      "serve", setup.address ?? "", "\(setup.port)", setup.authorities, setup.certificate, setup.key, setup.map ?? "",
      setup.revoked ?? "",
    ]
    let program: String
    do { program = try ChildProcess.program("stepctl-traffic") } catch { throw .noProgram }
    do { helper = try HelperProcess(program, arguments: arguments, longest: 1024) } catch { throw Self.error(error) }
  }

  /// Readable when the program has sent something or has ended. The caller must not read or close it.
  package var descriptor: Int32 { helper.descriptor }

  /// The messages that have arrived.
  ///
  /// - Throws: `failed` if the program cannot start.
  package func received() throws(BridgeError) -> [BridgeMessage] {
    let bodies: [[UInt8]]
    do { bodies = try helper.received() } catch { throw Self.error(error) }
    var messages: [BridgeMessage] = []
    for body in bodies {
      guard let message = try? BridgeMessage(body: body) else { throw .gaveUp }
      if case .failed(let reason, let text) = message { throw .failed(reason, text) }
      messages.append(message)
    }
    return messages
  }

  /// Publishes a frame, as a publisher does.
  package func publish(_ frame: FeedFrame) throws(BridgeError) {
    for message in FeedMessage.messages(frame.json.bytes, received: 0, dropped: 0) { try send(message.body) }
  }

  /// Replaces the lists of revoked certificates by newer ones, as PEM.
  package func revoke(_ lists: [UInt8]) throws(BridgeError) {
    try send(BridgeMessage.list)
    for message in FeedMessage.messages(lists, received: 0, dropped: 0) { try send(message.body) }
  }

  /// Asks for the counts.
  package func count() throws(BridgeError) { try send(BridgeMessage.count) }

  private func send(_ body: [UInt8]) throws(BridgeError) {
    do { try helper.send(body) } catch { throw Self.error(error) }
  }

  private static func error(_ error: HelperProcess.Failure) -> BridgeError {
    if case .system(let error) = error { .system(error) } else { .gaveUp }
  }
}
