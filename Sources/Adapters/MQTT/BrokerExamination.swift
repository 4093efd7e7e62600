import CMosquitto
import Domain
import Glibc
package import SystemIO

/// Examines a connection to a broker part by part: the name, TCP, TLS, and the broker's certificate.
///
/// It sends nothing of MQTT: only a real connection shows whether the broker accepts a client.
package struct BrokerExamination: Sendable {
  /// The numeric address that answered.
  package let address: String
  /// The time until TCP was connected.
  package let connecting: Duration
  /// The time from then until TLS was connected. In TLS 1.3 the broker checks the client's certificate after that.
  package let handshake: Duration
  /// `TLSv1.3`
  package let version: String
  /// The last second of the broker's certificate, Unix time. TLS refuses a certificate that is not valid yet.
  package let certificateEnd: Int64

  /// Connects and closes the connection.
  ///
  /// - Throws: the error of the first part that failed; `SystemError` of ECANCELED at the interruption.
  package init(_ broker: Broker, until deadline: Instant, interruption: Interruption) throws {
    guard let tls = broker.tls else { throw MQTTError.tlsFailed(broker, code: 0) }
    try tls.checkReadable()
    let context = try TLSContext(tls, broker)
    let began = Instant.now
    let socket = try Self.connect(to: broker, until: deadline, interruption)
    let connected = Instant.now
    guard let session = SSL_new(context.handle) else { throw MQTTError.tlsFailed(broker, code: ERR_get_error()) }
    defer { SSL_free(session) }
    guard SSL_set_fd(session, socket.number) == 1 else { throw MQTTError.tlsFailed(broker, code: ERR_get_error()) }
    while true {
      ERR_clear_error()
      let result = SSL_connect(session)
      if result == 1 { break }
      let events: Int32
      switch SSL_get_error(session, result) {
      case SSL_ERROR_WANT_READ: events = POLLIN
      case SSL_ERROR_WANT_WRITE: events = POLLOUT
      default: throw context.error ?? .lost(broker, .handshake)
      }
      guard try Self.wait(socket.number, events, until: deadline, interruption) else {
        throw MQTTError.timedOut(broker, .handshake)
      }
    }
    address = Connecting.peer(of: socket) ?? broker.host
    connecting = began.duration(to: connected)
    handshake = connected.duration(to: .now)
    version = String(cString: SSL_get_version(session))
    // TLS was verified, so there is a certificate.
    guard let certificate = SSL_get1_peer_certificate(session) else { throw MQTTError.lost(broker, .handshake) }
    defer { X509_free(certificate) }
    certificateEnd = seconds(X509_get0_notAfter(certificate)) ?? 0
    SSL_shutdown(session)
  }

  private static func connect(
    to broker: Broker, until deadline: Instant, _ interruption: Interruption
  ) throws -> Descriptor {
    do throws(Connecting.Failure) {
      return try Connecting.connect(host: broker.host, port: broker.port, until: deadline, interruption)
    } catch {
      switch error {
      case .unresolved(let code): throw MQTTError.cannotResolve(host: broker.host, code: code)
      case .refused(let error): throw MQTTError.cannotConnect(broker, code: error.code)
      case .interrupted: throw SystemError("connect", code: ECANCELED)
      }
    }
  }

  /// - Returns: false at the deadline.
  private static func wait(
    _ number: Int32, _ events: Int32, until deadline: Instant, _ interruption: Interruption
  ) throws -> Bool {
    var entries = [
      pollfd(fd: number, events: Int16(events), revents: 0),
      pollfd(fd: interruption.number, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      let left = Instant.now.duration(to: deadline).roundedUpToMilliseconds
      let count = poll(&entries, 2, Int32(clamping: left))
      if count == -1, errno == EINTR { continue }
      if entries[1].revents != 0 { throw SystemError("connect", code: ECANCELED) }
      return entries[0].revents != 0
    }
  }
}

/// A certificate's time as Unix time; nil if it cannot be read.
private func seconds(_ text: UnsafePointer<ASN1_TIME>?) -> Int64? {
  var time = tm()
  guard ASN1_TIME_to_tm(text, &time) == 1 else { return nil }
  return Int64(timegm(&time))
}

extension Broker.TLS {
  /// A file with certificates, and the period in which all of them are valid, Unix time.
  package struct CertificateFile: Equatable, Sendable {
    package let path: String
    /// The first second of the certificate that begins last.
    package let begin: Int64
    /// The last second of the certificate that ends first.
    package let end: Int64

    /// How long before the end somebody must be told: 30 days.
    package static let notice: Int64 = 30 * 86_400

    package init(path: String, begin: Int64, end: Int64) {
      (self.path, self.begin, self.end) = (path, begin, end)
    }

    package enum Condition: Sendable {
      /// By this computer's clock it is not valid yet.
      case early
      case valid
      /// Somebody must be told.
      case endsSoon
      case ended
    }

    /// - Parameter now: Unix time.
    package func condition(at now: Int64) -> Condition {
      if now < begin { return .early }
      if now > end { return .ended }
      return end - now < Self.notice ? .endsSoon : .valid
    }

    /// What `early` means.
    ///
    /// - Parameter begin: the time, in words.
    package static func meaning(ofEarly begin: String) -> String {
      "not valid before \(begin): this computer's clock is behind, or the operator's ahead"
    }

    /// What sets this computer's clock; nil if a time service keeps it.
    package static var clockRemedy: String? { WallClock.isKept ? nil : "timedatectl set-ntp true" }
  }

  /// The authority's file, and the client's if there is one.
  package func certificateFiles() throws -> [CertificateFile] {
    try ([(MQTTError.TLSFile.authority, authority)] + (identity.map { [(.certificate, $0.certificate)] } ?? []))
      .map { file, path in
        var (begins, ends): ([Int64], [Int64]) = ([], [])
        // A memory BIO reads the bytes where they are.
        try Files.readRegular(path).withUnsafeBytes { bytes in
          let memory = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count))
          defer { BIO_free(memory) }
          while let certificate = PEM_read_bio_X509(memory, nil, nil, nil) {
            defer { X509_free(certificate) }
            guard let begin = seconds(X509_get0_notBefore(certificate)),
              let end = seconds(X509_get0_notAfter(certificate))
            else { continue }
            begins.append(begin)
            ends.append(end)
          }
        }
        let code = ERR_peek_error()
        ERR_clear_error()
        guard let begin = begins.max(), let end = ends.min() else {
          throw MQTTError.unusableFile(file, path: path, .malformed(code))
        }
        return CertificateFile(path: path, begin: begin, end: end)
      }
  }
}
