import MQTT

/// A certificate authority with the certificates that it issued, made by the openssl command.
struct Certificates {
  private let fixture: Fixture
  private let name: String

  /// - Parameter name: of the files; every authority has the same name in its certificate.
  init(_ fixture: Fixture, _ name: String = "authority") throws {
    self.fixture = fixture
    self.name = name
    try run(
      "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
      "/CN=Test authority", "-days", "1", "-keyout", fixture.path("\(name).key"), "-out", authority)
  }

  var authority: String { fixture.path("\(name).pem") }

  /// - Parameter alternativeName: `DNS:…`, `IP:…`; nil for a client's certificate.
  /// - Parameter days: until it expires; a negative number is in the past.
  func issue(_ subject: String, alternativeName: String? = nil, days: Int = 1) throws -> Broker.Identity {
    let files = Broker.Identity(
      certificate: fixture.path("\(name)-\(subject).pem"), key: fixture.path("\(name)-\(subject).key"))
    let request = fixture.path("\(subject).csr")
    try run(
      "openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
      "/CN=\(subject)", "-keyout", files.key, "-out", request)
    let extensions = try fixture.write(
      "extensions", alternativeName.map { "subjectAltName=\($0)\n" } ?? "extendedKeyUsage=clientAuth\n")
    try run(
      "openssl", "x509", "-req", "-in", request, "-CA", authority, "-CAkey", fixture.path("\(name).key"), "-days",
      String(days), "-extfile", extensions, "-out", files.certificate)
    return files
  }
}
