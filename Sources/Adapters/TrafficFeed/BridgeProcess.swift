import Domain
import Encoding
import SystemIO
package import Traffic

/// A bridge. `stepctl-traffic` speaks WebSocket for it, in a process of its own.
///
/// - Threads: one uses it.
/// - Latency: nothing waits, except for a program that does not read: a second.
/// - Ownership: the program ends with it.
package final class BridgeProcess {
  /// Where it listens, and the files that say who it is and who may speak with it.
  package struct Setup: Sendable {
    /// The address of one interface; nil for all.
    package var address: String?
    /// 0 for any that is free.
    package var port: UInt16
    /// Certificates of the authorities that vouch for clients and publishers.
    package var authorities: String
    package var certificate: String
    package var key: String
    /// Where the sections are; nil where each client gets all.
    package var map: String?
    /// The authorities' lists of revoked certificates; nil where none are taken.
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
  private let setup: Setup

  package init(_ setup: Setup) throws(BridgeError) {
    self.setup = setup
    do {
      // The library that reads them does not say which one it cannot read.
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

  /// Readable when it has said something or has ended; lent, not to be read or closed.
  package var descriptor: Int32 { helper.descriptor }

  /// What it has said.
  ///
  /// - Throws: `failed` when it cannot begin.
  package func received() throws(BridgeError) -> [BridgeMessage] {
    let bodies: [[UInt8]]
    do { bodies = try helper.received() } catch { throw Self.error(error) }
    var messages: [BridgeMessage] = []
    for body in bodies {
      guard let message = try? BridgeMessage(body: body) else { throw .gaveUp }
      if case .failed(let reason, let text) = message { throw .failed(reason, port: setup.port, text) }
      messages.append(message)
    }
    return messages
  }

  /// Publishes a frame, as a publisher does.
  package func publish(_ frame: FeedFrame) throws(BridgeError) {
    for message in FeedMessage.messages(frame.json.bytes, received: 0, dropped: 0) { try send(message.body) }
  }

  /// Has newer lists of revoked certificates count, as PEM.
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
