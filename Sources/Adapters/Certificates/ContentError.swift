package import Domain
package import StepProtocol

/// A certificate, a key or a signed text that cannot be used, and where it is from.
package enum ContentError: Failure, Equatable {
  /// - Parameter place: a file's path, or words for a part of a message.
  case openSSL(_ place: String, OpenSSLError)
  case signed(_ place: String, ProtocolError)

  package var exitStatus: ExitStatus { .badData }

  package var description: String {
    switch self {
    case .openSSL(let place, let error): "\(place): \(error)"
    case .signed(let place, let error): "\(place): \(error)"
    }
  }
}

/// Adds the place to an error of libcrypto or of a signed text.
package func about<Result: ~Copyable>(_ place: String, _ body: () throws -> Result) throws -> Result {
  do { return try body() } catch {
    switch error {
    case let error as OpenSSLError: throw ContentError.openSSL(place, error)
    case let error as ProtocolError: throw ContentError.signed(place, error)
    default: throw error
    }
  }
}
