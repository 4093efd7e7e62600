package import Hummingbird
import NIOCore

/// What a request brings beside itself.
package struct FleetContext: RequestContext {
  package var coreContext: CoreRequestContextStorage
  /// Where the request comes from; nil on a Unix socket.
  package let address: String?

  package init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    address = source.channel.remoteAddress?.ipAddress
  }

  /// Bytes. The largest request is a device's.
  package var maxUploadSize: Int { Self.maximumBody }
  package static let maximumBody = 65_536
}

/// Who asks, as far as the request proves it.
package struct Caller: Sendable, Equatable {
  /// The account's id.
  package let account: String
  /// The thumbprint of the device key that the request was proven with (RFC 9449).
  package let device: String

  package init(account: String, device: String) { (self.account, self.device) = (account, device) }
}

/// Finds out who asks, and keeps out who is to be kept out.
package protocol Authenticator: Sendable {
  /// - Throws: a `Problem` of status 401, with `WWW-Authenticate`, when the request does not prove it.
  func caller(of request: Request, _ context: FleetContext) async throws -> Caller

  /// Ends every login of a device, by its key's thumbprint: none is renewed any more, and what it has lasts for
  /// minutes.
  ///
  /// - Returns: how many there were.
  func endLogins(of device: String) async throws -> Int
}

/// Seconds of Unix time; passed in, so that tests can be at any hour.
package typealias Clock = @Sendable () -> Int64
