import Certificates
import Domain
import Encoding
import FileFormats
import Glibc
import StepProtocol
import SystemIO

/// All files of a new operator and of the broker, with new keys. Nothing is written yet.
struct NewOperator: ~Copyable {
  let files: [NewFile]
  /// Admits the operator's vehicles.
  let admitter: Admitter
  /// When the broker's certificate ends, Unix time.
  let brokerEnd: Int64

  /// The folders of the files, with their modes. A broker that runs as another user must reach its key, so the modes of
  /// the files protect them.
  static let folders: [(name: String, mode: mode_t)] = [
    (VehiclePaths.operator, 0o700), (VehiclePaths.tls, 0o755), (VehiclePaths.data, 0o700),
  ]

  /// - Parameters:
  ///   - folder: any path of the operator's future folder, which exists: the broker's files have its absolute path.
  ///   - access: what the broker's clients may do.
  ///   - now: Unix time, from which the certificates are valid.
  init(named name: String, in folder: String, at record: BrokerRecord, _ access: AccessList, now: Int64) throws {
    let address = record.address
    let broker = try BrokerConfiguration(folder: folder, record, owner: BrokerConfiguration.owner)
    let key = SigningKey()
    let authority = try about(folder) {
      try CertificateAuthority(name: name, at: "\(folder)/\(VehiclePaths.authorityCertificate)", now: now)
    }
    let (certificates, end) = try about(folder) { try Self.certificates(by: authority, address.host, now: now) }
    files =
      broker.files(access) + certificates + [
        NewFile(VehiclePaths.brokerAddress, record.text),
        NewFile(VehiclePaths.tokenKey, key.jwk.text + "\n", isPrivate: true),
        NewFile(VehiclePaths.ledger, Ledger().text, isPrivate: true),
      ]
    admitter = Admitter(keys: [key.verificationKey], authority: authority, broker: address)
    brokerEnd = end
  }

  /// The certificates of authority, broker and operator, and when the broker's ends.
  private static func certificates(
    by authority: borrowing CertificateAuthority, _ host: BrokerHost, now: Int64
  ) throws -> ([NewFile], end: Int64) {
    let brokerKey = try PrivateKey()
    let ownKey = try PrivateKey()
    let broker = try authority.issue(.broker(host), to: brokerKey, now: now)
    let list = try authority.revocationList([], now: now).pem()
    return (
      [
        NewFile(VehiclePaths.revocationList, list),
        NewFile("\(VehiclePaths.tls)/\(authority.certificate.revocationListName)", list),
        NewFile(VehiclePaths.authorityCertificate, try authority.certificate.pem()),
        NewFile(VehiclePaths.authorityKey, try authority.key.pem(), isPrivate: true),
        NewFile(VehiclePaths.brokerCertificate, try broker.pem()),
        NewFile(VehiclePaths.brokerKey, try brokerKey.pem(), isPrivate: true),
        NewFile(VehiclePaths.operatorCertificate, try authority.issue(.client(.operator), to: ownKey, now: now).pem()),
        NewFile(VehiclePaths.operatorKey, try ownKey.pem(), isPrivate: true),
      ], try broker.end()
    )
  }
}

/// What admits vehicles: an operator's keys, authority and broker.
struct Admitter: ~Copyable {
  /// The valid keys, the present one first.
  let keys: [VerificationKey]
  let authority: CertificateAuthority
  let broker: BrokerAddress

  /// Issues the certificate of a new vehicle's controller.
  func admit(_ enrolment: VehicleEnrolment, now: Int64) throws -> VehicleAdmission {
    let request = try about("the certificate request") {
      try CertificateRequest(der: enrolment.certificateRequest, name: "controller")
    }
    return try about("the authority's certificate") {
      let role = CertificateRole.client(.controller(of: enrolment.vehicle.uuid))
      let certificate = try authority.issue(role, for: request, now: now, lastingUntil: 0)
      return VehicleAdmission(
        name: enrolment.vehicle.name, keys: keys, broker: broker, authority: try authority.certificate.pem(),
        certificate: try certificate.pem())
    }
  }
}

extension OperatorPlace {
  func admitter() throws -> Admitter {
    Admitter(keys: try keys().counting, authority: try VehicleFolder(path).readAuthority(), broker: try broker())
  }
}
