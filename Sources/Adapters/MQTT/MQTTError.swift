import CMosquitto
package import Domain
import Glibc
package import SystemIO

/// Why there is no connection, or why it ended.
package enum MQTTError: Failure, Equatable {
  /// A file of `Broker.TLS` that cannot be used: its kind, its path, and the reason.
  case unusableFile(TLSFile, path: String, FileFault)
  /// The name service's reason is an `EAI_*` value of getaddrinfo(3).
  case cannotResolve(host: String, code: Int32)
  /// The error for the last address that was tried: ECONNREFUSED, EHOSTUNREACH…
  case cannotConnect(SystemError)
  /// The other side was silent for too long.
  case timedOut(Broker, Stage)
  /// The broker's certificate was not accepted: this may not be the intended broker.
  case untrustedBroker(Broker, CertificateFault)
  /// The broker ended TLS with an alert (RFC 8446 6.2). Usually it wants another client certificate.
  case refusedByAlert(Broker, UInt8)
  /// TLS failed for another reason; the code is OpenSSL's packed code (`openssl errstr` explains it).
  case tlsFailed(Broker, code: UInt)
  /// CONNACK with a return code other than 0 (MQTT 3.1.1, 3.2.2.3).
  case refused(Broker, ConnectReturnCode)
  /// SUBACK with failure (MQTT 3.1.1, 3.9.3).
  case subscriptionRefused(Broker, filter: String)
  /// The other side or the network closed the connection.
  case lost(Broker, Stage)
  /// The other side sent a larger packet than this program accepts.
  case oversized(Broker)
  /// The received data was not MQTT 3.1.1; the code is libmosquitto's.
  case protocolViolated(Broker, code: Int32)
  case system(SystemError)

  package enum TLSFile: String, Sendable {
    case authority = "CA certificate"
    case certificate = "client certificate"
    case key = "client key"
  }

  package enum FileFault: Equatable, Sendable {
    case unreadable(SystemError)
    /// Not a PEM that OpenSSL accepts; the code is OpenSSL's packed code.
    case malformed(UInt)
    /// The key needs a passphrase, which nobody could type.
    case encrypted
    /// The key does not belong to the certificate.
    case mismatch
  }

  package enum CertificateFault: Equatable, Sendable {
    case unknownAuthority
    case expired
    case notYetValid
    case nameMismatch
    /// An `X509_V_ERR_*` value of X509_STORE_CTX_get_error(3).
    case other(Int)
  }

  /// The stage that a connection had reached.
  package enum Stage: Equatable, Sendable {
    case connecting, handshake, greeting, established
  }

  package struct ConnectReturnCode: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int32
    package init(rawValue: Int32) { self.rawValue = rawValue }

    package static let unacceptableProtocolVersion = ConnectReturnCode(rawValue: 1)
    package static let identifierRejected = ConnectReturnCode(rawValue: 2)
    package static let serverUnavailable = ConnectReturnCode(rawValue: 3)
    package static let badUserNameOrPassword = ConnectReturnCode(rawValue: 4)
    package static let notAuthorized = ConnectReturnCode(rawValue: 5)
  }

  package var description: String {
    switch self {
    case .unusableFile(_, _, .unreadable(let error)), .cannotConnect(let error), .system(let error):
      error.description
    case .unusableFile(let file, let path, let fault):
      "cannot use the \(file.rawValue) \(path): \(fault)"
    case .cannotResolve(let host, let code):
      "cannot find the broker's host \(host): \(String(cString: gai_strerror(code)))"
    case .timedOut(let broker, let stage):
      "the broker \(broker) did not answer in time (\(stage))"
    case .untrustedBroker(let broker, let fault):
      "the certificate of the broker \(broker) \(fault)"
    case .refusedByAlert(let broker, let alert):
      "the broker \(broker) refused the TLS connection: \(Self.meaning(of: alert))"
    case .tlsFailed(let broker, let code):
      "TLS with the broker \(broker) failed: \(reason(ofOpenSSL: code))"
    case .refused(let broker, let code):
      "the broker \(broker) refused the connection: \(code)"
    case .subscriptionRefused(let broker, let filter):
      "the broker \(broker) does not let this client subscribe to \(filter)"
    case .lost(let broker, .established):
      "the connection to the broker \(broker) was lost"
    case .lost(let broker, let stage):
      "the connection to the broker \(broker) was lost (\(stage))"
    case .oversized(let broker):
      "the broker \(broker) sent a message that is too large"
    case .protocolViolated(let broker, let code):
      "what the broker \(broker) sent is not MQTT 3.1.1: \(String(cString: mosquitto_strerror(code)))"
    }
  }

  package var exitStatus: ExitStatus {
    switch self {
    case .unusableFile(_, _, .unreadable(let error)), .system(let error): error.exitStatus
    case .unusableFile: .configuration
    case .refused(_, .notAuthorized), .subscriptionRefused: .noPermission
    case .refusedByAlert(_, let alert) where Self.isAboutCertificate(alert): .noPermission
    case .cannotResolve, .cannotConnect, .timedOut, .untrustedBroker, .refusedByAlert, .tlsFailed, .refused, .lost,
      .oversized, .protocolViolated:
      .unavailable
    }
  }

  package var hint: String? {
    switch self {
    case .cannotConnect, .cannotResolve:
      "see whether the vehicle's broker is on, and in reach of this network"
    case .refusedByAlert(_, let alert) where Self.isAboutCertificate(alert):
      "ask the operator for a new certificate; `stepctl doctor` shows which ends when"
    case .unusableFile, .timedOut, .untrustedBroker, .refusedByAlert, .tlsFailed, .refused, .subscriptionRefused, .lost,
      .oversized, .protocolViolated, .system:
      nil
    }
  }

  /// - Parameter code: the `errno` value.
  package static func cannotConnect(_ broker: Broker, code: Int32) -> MQTTError {
    .cannotConnect(SystemError("connect to the broker", broker.description, code: code))
  }

  /// Whether the broker objects to the rider's certificate rather than to the connection.
  private static func isAboutCertificate(_ alert: UInt8) -> Bool {
    [42, 43, 44, 45, 46, 48, 49, 51, 116].contains(alert)
  }

  /// The broker's most likely objection, by the alert (RFC 8446 6).
  private static func meaning(of alert: UInt8) -> String {
    switch alert {
    case 116: "it requires a client certificate (alert 116)"
    case 40: "it requires a client certificate, or shares no cipher with this client (alert 40)"
    case 42, 43, 46, 48, 49, 51: "it does not accept the client certificate (alert \(alert))"
    case 44: "the client certificate has been revoked (alert 44)"
    case 45: "the client certificate has expired (alert 45)"
    case 70: "it does not speak TLS 1.2 or later (alert 70)"
    default: "alert \(alert)"
    }
  }
}

extension MQTTError.FileFault: CustomStringConvertible {
  package var description: String {
    switch self {
    case .unreadable(let error): error.code == EINVAL ? "not a regular file" : error.reason
    case .malformed: "damaged, or not PEM"
    case .encrypted: "it needs a passphrase; use a key without one that only its owner can read"
    case .mismatch: "it does not belong to the client certificate"
    }
  }
}

extension MQTTError.CertificateFault: CustomStringConvertible {
  package var description: String {
    switch self {
    case .unknownAuthority: "was not issued by an authority in the CA file"
    case .expired: "has expired"
    case .notYetValid: "is not valid yet (is this machine's clock right?)"
    case .nameMismatch: "is for another host name"
    case .other(let code): "was not accepted: \(String(cString: X509_verify_cert_error_string(code)))"
    }
  }
}

extension MQTTError.Stage: CustomStringConvertible {
  package var description: String {
    switch self {
    case .connecting: "while connecting"
    case .handshake: "in the TLS handshake"
    case .greeting: "before CONNACK"
    case .established: "after it was established"
    }
  }
}

extension MQTTError.ConnectReturnCode: CustomStringConvertible {
  package var description: String {
    switch self {
    case .unacceptableProtocolVersion: "it does not speak MQTT 3.1.1"
    case .identifierRejected: "it rejects the client identifier"
    case .serverUnavailable: "it is unavailable"
    case .badUserNameOrPassword: "bad user name or password"
    case .notAuthorized: "not authorized"
    default: "return code \(rawValue)"
    }
  }
}

extension Broker: CustomStringConvertible {
  public var description: String { HostPort(host: host, port: port).description }
}

/// OpenSSL's words for a packed error code, without the name of its library.
private func reason(ofOpenSSL code: UInt) -> String {
  ERR_reason_error_string(code).map { String(cString: $0) } ?? "OpenSSL error \(String(code, radix: 16))"
}
