import Certificates
import Domain
import Operator
import TestSupport
import Testing

/// What OpenSSL's command says of the certificates.
@Suite("Certificates", .enabled(if: Subprocess.isInstalled("openssl"), "openssl is not installed"))
struct CertificateTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  func openssl(_ arguments: String...) throws -> Subprocess.Outcome {
    try Subprocess.run(["openssl"] + arguments)
  }

  /// What `openssl x509` prints of a certificate in the folder.
  func read(_ name: String, _ options: String...) throws -> String {
    try Subprocess.run(
      ["openssl", "x509", "-noout", "-in", "\(folder.path)/vehicle/\(name)", "-nameopt", "utf8,sep_comma_plus"]
        + options
    ).output
  }

  static let authority = "tls/ca.pem"
  static let broker = "tls/broker.pem"
  static let controller = "tls/controller.pem"
  static let rider = "riders/ann/rider.pem"

  @discardableResult
  func provision(
    _ plan: VehiclePlan? = nil, at broker: BrokerAddress = .sample, now: Int64 = now
  ) throws -> VehicleFolder {
    let vehicle = try folder.vehicle(plan, at: broker, now: now)
    _ = try vehicle.provisionToken(.sample(from: now), now: now, force: false)
    return vehicle
  }

  @Test(
    "are strictly valid for their purpose, and for that alone",
    arguments: [
      (broker, "sslserver", "sslclient"), (controller, "sslclient", "sslserver"), (rider, "sslclient", "sslserver"),
    ])
  func purpose(name: String, purpose: String, other: String) throws {
    try provision()
    func verify(for purpose: String) throws -> Int32 {
      let path = "\(folder.path)/vehicle"
      return try openssl(
        "verify", "-x509_strict", "-purpose", purpose, "-CAfile", "\(path)/\(Self.authority)", "\(path)/\(name)"
      ).status
    }
    #expect(try verify(for: purpose) == 0)
    #expect(try verify(for: other) != 0)
  }

  @Test("are believed for the names of their host and of the computer itself, and for no others")
  func hostNames() throws {
    try provision(at: BrokerAddress(host: BrokerHost("vehicle.example")!, port: 8883))
    for (option, name, isValid) in [
      ("-verify_hostname", "vehicle.example", true), ("-verify_hostname", "localhost", true),
      ("-verify_ip", "127.0.0.1", true), ("-verify_ip", "::1", true),
      ("-verify_hostname", "example", false), ("-verify_hostname", "other.example", false),
      ("-verify_ip", "10.0.0.1", false),
    ] {
      let path = "\(folder.path)/vehicle"
      let result = try openssl(
        "verify", "-CAfile", "\(path)/\(Self.authority)", option, name, "\(path)/\(Self.broker)")
      #expect((result.status == 0) == isValid, "\(name): \(result.printed)")
    }
  }

  @Test(
    "name an address as an address",
    arguments: [("10.0.0.1", "IP Address:10.0.0.1"), ("fd00::1", "IP Address:FD00:0:0:0:0:0:0:1")])
  func address(host: String, name: String) throws {
    try provision(at: BrokerAddress(host: BrokerHost(host)!, port: 8883))
    #expect(
      try read(Self.broker, "-ext", "subjectAltName").contains(
        "\(name), DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1\n"))
  }

  static let extensions = [
    authority: """
    X509v3 Subject Key Identifier: #
    X509v3 Basic Constraints: critical CA:TRUE, pathlen:0
    X509v3 Key Usage: critical Certificate Sign, CRL Sign
    """,
    broker: """
    X509v3 Subject Key Identifier: #
    X509v3 Authority Key Identifier: #
    X509v3 Basic Constraints: critical CA:FALSE
    X509v3 Key Usage: critical Digital Signature
    X509v3 Extended Key Usage: TLS Web Server Authentication
    X509v3 Subject Alternative Name: DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1
    """,
    controller: client, rider: client,
  ]
  static let client = """
    X509v3 Subject Key Identifier: #
    X509v3 Authority Key Identifier: #
    X509v3 Basic Constraints: critical CA:FALSE
    X509v3 Key Usage: critical Digital Signature
    X509v3 Extended Key Usage: TLS Web Client Authentication
    """

  @Test("have these extensions and no others", arguments: [authority, broker, controller, rider])
  func extensions(name: String) throws {
    try provision()
    let text = try read(
      name, "-text", "-certopt",
      "no_header,no_version,no_serial,no_signame,no_issuer,no_validity,no_subject,no_pubkey,no_sigdump")
    let lines = text.split(separator: "\n").map { $0.drop { $0 == " " } }.filter { $0 != "X509v3 extensions:" }
    // A name and its value take two lines.
    let entries = stride(from: 0, to: lines.count - 1, by: 2).map { index in
      let value = lines[index + 1]
      let isIdentifier = value.count == 59 && value.allSatisfy { $0.isHexDigit || $0 == ":" }
      return "\(lines[index].split(separator: " ").joined(separator: " ")) \(isIdentifier ? "#" : value)"
    }
    #expect(entries.joined(separator: "\n") == Self.extensions[name])
  }

  @Test("name roles and vehicles, and not people")
  func subjects() throws {
    try provision()
    let uuid = try Vehicle.sample().uuid
    #expect(try read(Self.authority, "-subject") == "subject=CN=stepctl CA for Rolling Chassis\n")
    #expect(try read(Self.broker, "-subject") == "subject=CN=broker\n")
    #expect(try read(Self.controller, "-subject") == "subject=CN=controller:\(uuid)\n")
    #expect(try read(Self.rider, "-subject") == "subject=CN=rider:\(uuid)\n")
    #expect(try read(Self.rider, "-issuer") == "issuer=CN=stepctl CA for Rolling Chassis\n")
  }

  @Test(
    "name the authority after any vehicle, cut to 64 characters",
    arguments: [
      ("Fährwagen Ω 車", "Fährwagen Ω 車"),
      ("a,b+c=d/CN=controller", "a,b+c=d/CN=controller"),
      (String(repeating: "ä", count: 64), String(repeating: "ä", count: 49)),
      // Seven scalars that people see as one: all of it stays, or nothing.
      (String(repeating: "a", count: 45) + "👨‍👩‍👧‍👦👨‍👩‍👧‍👦", String(repeating: "a", count: 45)),
    ])
  func vehicleNames(vehicle: String, name: String) throws {
    try provision(.sample(vehicle))
    #expect(try read(Self.authority, "-subject") == "subject=CN=stepctl CA for \(name)\n")
    #expect(
      try openssl(
        "verify", "-x509_strict", "-CAfile", "\(folder.path)/vehicle/\(Self.authority)",
        "\(folder.path)/vehicle/\(Self.broker)"
      ).status == 0)
  }

  @Test("begin five minutes early, and last for ten years, 825 days and a year")
  func validity() throws {
    // 2027-01-01T00:00:00Z
    try provision(now: 1_798_761_600)
    let begin = "notBefore=Dec 31 23:55:00 2026 GMT\n"
    #expect(try read(Self.authority, "-dates") == begin + "notAfter=Dec 29 00:00:00 2036 GMT\n")
    #expect(try read(Self.broker, "-dates") == begin + "notAfter=Apr  5 00:00:00 2029 GMT\n")
    #expect(try read(Self.controller, "-dates") == begin + "notAfter=Apr  5 00:00:00 2029 GMT\n")
    #expect(try read(Self.rider, "-dates") == begin + "notAfter=Jan  1 00:00:00 2028 GMT\n")
  }

  @Test("stay valid where the years of UTCTime end")
  func year2050() throws {
    // 2049-05-24T00:00:00Z
    try provision(now: 2_505_427_200)
    let path = "\(folder.path)/vehicle"
    let result = try openssl(
      "verify", "-x509_strict", "-attime", "2505427200", "-CAfile", "\(path)/\(Self.authority)",
      "\(path)/\(Self.broker)", "\(path)/\(Self.rider)")
    #expect(result.status == 0, "\(result.printed)")
    #expect(try read(Self.authority, "-enddate") == "notAfter=May 22 00:00:00 2059 GMT\n")
  }

  @Test("have serial numbers of at most 20 bytes that differ")
  func serialNumbers() throws {
    try provision()
    let numbers = try [Self.authority, Self.broker, Self.controller, Self.rider].map { try read($0, "-serial") }
    #expect(Set(numbers).count == 4)
    for number in numbers {
      let digits = number.trimmingPrefix("serial=").dropLast()
      #expect(digits.count > 20 && digits.count <= 40 && digits.allSatisfy(\.isHexDigit), "\(number)")
    }
  }

  @Test(
    "have P-256 keys of their own, in files that fit",
    arguments: [
      (authority, "operator/ca.key"), (broker, "tls/broker.key"), (controller, "tls/controller.key"),
      (rider, "riders/ann/rider.key"),
    ])
  func keys(name: String, key: String) throws {
    try provision()
    let path = "\(folder.path)/vehicle/\(key)"
    #expect(try TemporaryFolder.text(path).hasPrefix("-----BEGIN PRIVATE KEY-----\n"))
    #expect(try openssl("pkey", "-in", path, "-noout", "-text").printed.contains("ASN1 OID: prime256v1"))
    let publicKey = try openssl("pkey", "-in", path, "-pubout").printed
    #expect(publicKey.hasPrefix("-----BEGIN PUBLIC KEY-----\n"))
    #expect(try read(name, "-pubkey") == publicKey)
  }
}
