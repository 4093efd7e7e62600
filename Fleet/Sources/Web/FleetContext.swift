package import Hummingbird
import NIOCore

/// A request's context.
package struct FleetContext: RequestContext {
  package var coreContext: CoreRequestContextStorage
  /// The request's source address; nil on a Unix socket.
  package let address: String?

  package init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    address = source.channel.remoteAddress?.ipAddress
  }

  /// Bytes. The largest request is a device's.
  package var maxUploadSize: Int { Self.maximumBody }
  package static let maximumBody = 65_536
}

/// The caller, as far as the request proves it.
package struct Caller: Sendable, Equatable {
  /// The account's id.
  package let account: String
  /// The thumbprint of the device key that signed the request's proof (RFC 9449).
  package let device: String

  package init(account: String, device: String) { (self.account, self.device) = (account, device) }
}

/// Identifies callers, and refuses those without access.
package protocol Authenticator: Sendable {
  /// - Throws: a `Problem` of status 401, with `WWW-Authenticate`, when the request does not prove it.
  func caller(of request: Request, _ context: FleetContext) async throws -> Caller

  /// Ends every login of a device, by its key's thumbprint. No login can be renewed, and existing tokens last for
  /// minutes.
  ///
  /// - Returns: the number of logins.
  func endLogins(of device: String) async throws -> Int
}

/// Seconds of Unix time; passed in, so that tests can be at any hour.
package typealias Clock = @Sendable () -> Int64
