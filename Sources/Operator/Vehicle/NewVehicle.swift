import Bluetooth
import Certificates
import Domain
import Encoding
import FileFormats
import Glibc
import MQTT
import StepController
package import StepProtocol
import StepdConfiguration
import SystemIO

/// All files of a new vehicle, with new keys. Nothing is written yet.
struct NewVehicle {
  let files: [NewFile]
  let summary: VehicleSummary
  /// The owner of the broker's private key.
  let brokerOwner: uid_t
  /// Whether the vehicle has its own operator and broker.
  let isItsOwnOperator: Bool

  /// - Parameters:
  ///   - folder: the vehicle's future folder, which exists.
  ///   - issuer: the operator whose broker, authority and keys the vehicle uses.
  init(_ plan: VehiclePlan, in folder: VehicleFolder, by issuer: VehicleIssuer, now: Int64) throws {
    isItsOwnOperator = if case .own = issuer { true } else { false }
    // A broker must not run as root: Debian's has its own user.
    brokerOwner = isItsOwnOperator ? BrokerConfiguration.owner : geteuid()
    let issue = try Issue(plan, in: folder, by: issuer, brokerOwner: brokerOwner, now: now)
    let (plan, tokenKey) = (issue.plan, issue.tokenKey)
    let vehicle = VehicleFile(
      path: VehiclePaths.vehicle, vehicle: plan.vehicle, operatorKey: tokenKey,
      topic: plan.topic,
      broker: Broker(
        host: plan.host.description, port: plan.port,
        tls: .init(authority: VehiclePaths.authorityCertificate, identity: nil)),
      controller: .init(encryption: issue.encryption, signing: issue.signing))
    let controller = ControllerFile(
      path: VehiclePaths.controller, vehicle: VehiclePaths.vehicle,
      broker: .init(
        identity: .init(certificate: VehiclePaths.controllerCertificate, key: VehiclePaths.controllerKey)),
      keys: .init(
        encryption: VehiclePaths.encryptionKey, signing: VehiclePaths.signingKey, operatorKey: tokenKey),
      policy: plan.policy, beacons: plan.beacons, tagKeys: VehiclePaths.tagKeys,
      servo: plan.servo.hardware(for: plan.vehicle.steps), trafficGuard: plan.trafficGuard)
    let secrets = plan.vehicle.steps.map(\.id).filter { plan.beacons[$0] != nil }.map(NewFile.beaconSecret)
    files =
      [
        NewFile(VehiclePaths.vehicle, vehicle.render()),
        NewFile(VehiclePaths.controller, controller.render()),
        NewFile(VehiclePaths.tagKeys, TagKeyFile(path: VehiclePaths.tagKeys).render(), isPrivate: true),
      ] + issue.keys + secrets + issue.certificates + issue.operatorFiles
    summary = VehicleSummary(
      files: files.map(\.name), vehicle: plan.vehicle, host: plan.host, port: plan.port,
      tokenKey: tokenKey.thumbprint, encryptionKey: issue.encryption.thumbprint,
      signingKey: issue.signing.thumbprint, certificatesEnd: issue.certificatesEnd)
  }
}

/// The parts of a new vehicle that depend on its issuer: keys and certificates.
private struct Issue {
  /// The requested plan; a fleet's server chooses the names of the vehicle and its broker.
  var plan: VehiclePlan
  /// The vehicle's public keys.
  let encryption: EncryptionKey
  let signing: VerificationKey
  /// The key that signs tokens for the vehicle.
  let tokenKey: VerificationKey
  /// The vehicle's private keys; empty if they were made on the vehicle.
  let keys: [NewFile]
  let certificates: [NewFile]
  /// When the first of the certificates ends, Unix time.
  let certificatesEnd: Int64
  /// The files of a vehicle that is its own operator.
  let operatorFiles: [NewFile]

  init(
    _ plan: VehiclePlan, in folder: VehicleFolder, by issuer: VehicleIssuer, brokerOwner: uid_t, now: Int64
  ) throws {
    self.plan = plan
    switch issuer {
    case .publicKeys(let fleet, let imported):
      (encryption, signing, keys, operatorFiles) = (imported.encryption, imported.signing, [], [])
      tokenKey = try fleet.keys().present.verificationKey
      (certificates, certificatesEnd) = try Self.certificate(for: imported, in: fleet, plan, now: now)
    case .own:
      let key = SigningKey()
      (encryption, signing, keys) = Self.newKeys()
      tokenKey = key.verificationKey
      (certificates, certificatesEnd) = try about(folder.path) { try Self.certificates(for: plan, now: now) }
      operatorFiles = try Self.operatorFiles(for: plan, key, in: folder, owner: brokerOwner)
    case .place(let fleet):
      (encryption, signing, keys) = Self.newKeys()
      tokenKey = try fleet.keys().present.verificationKey
      (certificates, certificatesEnd) = try Self.certificate(in: fleet, plan, now: now)
      operatorFiles = []
    case .server(let enrol):
      (encryption, signing, keys) = Self.newKeys()
      let key = try about(folder.path) { try PrivateKey() }
      let request = try about(folder.path) { try CertificateRequest(for: key, name: "controller").der() }
      let admission = try enrol(
        VehicleEnrolment(
          vehicle: plan.vehicle, topic: plan.topic, encryptionKey: encryption, signingKey: signing,
          certificateRequest: request))
      tokenKey = admission.operatorKey
      self.plan.host = admission.host
      self.plan.port = admission.port
      // The steps are unchanged, so this cannot fail.
      self.plan.vehicle = try! Vehicle(name: admission.name, uuid: plan.vehicle.uuid, steps: plan.vehicle.steps)
      (certificates, certificatesEnd) = try about("the server's answer") {
        try Self.certificate(of: admission, for: key)
      }
      operatorFiles = []
    }
  }

  /// The keys of a vehicle that is made on this computer, and the files for its private keys.
  private static func newKeys() -> (EncryptionKey, VerificationKey, [NewFile]) {
    let (encryption, signing) = (DecryptionKey(), SigningKey())
    let files = [
      NewFile(VehiclePaths.encryptionKey, encryption.jwk.text + "\n", isPrivate: true),
      NewFile(VehiclePaths.signingKey, signing.jwk.text + "\n", isPrivate: true),
    ]
    return (encryption.encryptionKey, signing.verificationKey, files)
  }

  /// The certificate that a fleet's server has issued, checked, and when it ends.
  private static func certificate(
    of admission: VehicleAdmission, for key: borrowing PrivateKey
  ) throws -> ([NewFile], end: Int64) {
    let certificate = try Certificate(pem: admission.certificate)
    try certificate.require(isFor: key)
    try certificate.require(isFrom: Certificate(pem: admission.authority))
    return (
      [
        NewFile(VehiclePaths.authorityCertificate, try Certificate(pem: admission.authority).pem()),
        NewFile(VehiclePaths.controllerCertificate, try certificate.pem()),
        NewFile(VehiclePaths.controllerKey, try key.pem(), isPrivate: true),
      ], try certificate.end()
    )
  }

  /// The files of a vehicle that is its own operator.
  private static func operatorFiles(
    for plan: VehiclePlan, _ tokenKey: SigningKey, in folder: VehicleFolder, owner: uid_t
  ) throws -> [NewFile] {
    let broker = try BrokerConfiguration(folder: folder.path, host: plan.host, port: plan.port, owner: owner)
    let access = AccessList([.init(topic: plan.topic, steps: plan.vehicle.steps, uuid: nil)])
    return broker.files(access) + [NewFile(VehiclePaths.tokenKey, tokenKey.jwk.text + "\n", isPrivate: true)]
  }

  /// The certificate for a vehicle whose keys were made on the vehicle, and when it ends.
  private static func certificate(
    for imported: VehicleKeys, in fleet: OperatorPlace, _ plan: VehiclePlan, now: Int64
  ) throws -> ([NewFile], end: Int64) {
    let authority = try VehicleFolder(fleet.path).readAuthority()
    let request = try about("the keys") {
      try CertificateRequest(der: imported.certificateRequest, name: "controller")
    }
    return try about(fleet.path) {
      let role = CertificateRole.controller(of: plan.vehicle.uuid)
      let certificate = try authority.issue(role, for: request, now: now, lastingUntil: 0)
      return (
        [
          NewFile(VehiclePaths.authorityCertificate, try authority.certificate.pem()),
          NewFile(VehiclePaths.controllerCertificate, try certificate.pem()),
        ], try certificate.end()
      )
    }
  }

  /// A new key and a certificate for the controller of a fleet's vehicle, and when the certificate ends.
  private static func certificate(
    in fleet: OperatorPlace, _ plan: VehiclePlan, now: Int64
  ) throws -> ([NewFile], end: Int64) {
    let authority = try VehicleFolder(fleet.path).readAuthority()
    return try about(fleet.path) {
      let key = try PrivateKey()
      let certificate = try authority.issue(.controller(of: plan.vehicle.uuid), to: key, now: now)
      return (
        [
          NewFile(VehiclePaths.authorityCertificate, try authority.certificate.pem()),
          NewFile(VehiclePaths.controllerCertificate, try certificate.pem()),
          NewFile(VehiclePaths.controllerKey, try key.pem(), isPrivate: true),
        ], try certificate.end()
      )
    }
  }

  /// The authority and the certificates of broker and controller, and when the first of those two ends, Unix time.
  private static func certificates(
    for plan: VehiclePlan, now: Int64
  ) throws(OpenSSLError) -> ([NewFile], end: Int64) {
    let authority = try CertificateAuthority(vehicleName: plan.vehicle.name, now: now)
    let brokerKey = try PrivateKey()
    let broker = try authority.issue(.broker(plan.host), to: brokerKey, now: now)
    let controllerKey = try PrivateKey()
    let controller = try authority.issue(.controller(of: nil), to: controllerKey, now: now)
    let operatorKey = try PrivateKey()
    let files = [
      NewFile(
        VehiclePaths.operatorCertificate, try authority.issue(.operator, to: operatorKey, now: now).pem()),
      NewFile(VehiclePaths.operatorKey, try operatorKey.pem(), isPrivate: true),
      NewFile(VehiclePaths.revocationList, try authority.revocationList([], now: now).pem()),
      NewFile(VehiclePaths.authorityCertificate, try authority.certificate.pem()),
      NewFile(VehiclePaths.authorityKey, try authority.key.pem(), isPrivate: true),
      NewFile(VehiclePaths.brokerCertificate, try broker.pem()),
      NewFile(VehiclePaths.brokerKey, try brokerKey.pem(), isPrivate: true),
      NewFile(VehiclePaths.controllerCertificate, try controller.pem()),
      NewFile(VehiclePaths.controllerKey, try controllerKey.pem(), isPrivate: true),
    ]
    return (files, min(try broker.end(), try controller.end()))
  }
}

extension VehiclePlan {
  /// A vehicle whose beacons all rotate accepts no proof that can be copied; any other vehicle accepts every kind.
  fileprivate var policy: Policy {
    let rotates = vehicle.steps.allSatisfy { beaconRadios[$0.id] != nil }
    let standard = ControllerFile.standardPolicy
    return Policy(
      methods: rotates ? [.beacon, .nfc] : [.beacon, .nfc, .qr], acceptsStatic: !rotates, zone: standard.zone,
      proofAge: standard.proofAge)
  }

  fileprivate var beacons: [StepID: ControllerFile.Beacon] {
    var beacons: [StepID: ControllerFile.Beacon] = [:]
    for (id, radio) in beaconRadios {
      beacons[id] = ControllerFile.Beacon(secret: VehiclePaths.beaconSecret(of: id), radio: radio)
    }
    return beacons
  }
}

extension ServoKind {
  /// The hardware to begin with.
  fileprivate func hardware(for steps: [Step]) -> ServoHardware {
    let channels = Dictionary(uniqueKeysWithValues: steps.enumerated().map { ($1.id, $0) })
    return switch self {
    case .simulated: .simulated(log: ControllerFile.standardServoLog)
    case .pwm: .pwm(PWMOutputs(channels: channels.mapValues { PWMChannel(chip: 0, channel: $0) }))
    case .pca9685: .pca9685(PCA9685Outputs(channels: channels.mapValues { PCA9685Channel(channel: $0) }))
    }
  }
}

extension NewFile {
  /// A new secret.
  fileprivate static func beaconSecret(for step: StepID) -> NewFile {
    NewFile(VehiclePaths.beaconSecret(of: step), BeaconSecret().jwk.text + "\n", isPrivate: true)
  }
}

extension VehicleFolder {
  /// Makes a controller's private keys on the computer where it will run, or reads the existing ones.
  ///
  /// - Parameter now: Unix time.
  /// - Returns: the public keys, for the operator, and whether the keys are new.
  package func prepareKeys(now: Int64) throws -> (text: String, signing: Thumbprint, isNew: Bool) {
    let keys = [VehiclePaths.encryptionKey, VehiclePaths.signingKey, VehiclePaths.controllerKey].map(path)
    let present = keys.filter { Files.exists($0) }
    if present.isEmpty {
      try Files.createFolder(path(VehiclePaths.keys), mode: 0o700)
      try Files.createFolder(path(VehiclePaths.tls), mode: 0o755)
      let pem = try about(path) { try PrivateKey().pem() }
      let contents = [Array((DecryptionKey().jwk.text + "\n").utf8), Array((SigningKey().jwk.text + "\n").utf8), pem]
      for (file, content) in zip(keys, contents) { try Files.create(file, with: content, mode: 0o600) }
      for folder in [VehiclePaths.keys, VehiclePaths.tls] { try StagingFolder.synchronize(path(folder)) }
    } else if present.count < keys.count {
      throw ProvisioningError.incompleteKeys(present[0])
    }
    let signing = try KeyFile.signingKey(keys[1])
    let key = try readPrivateKey(VehiclePaths.controllerKey)
    let request = try about(keys[2]) { try CertificateRequest(for: key, name: "controller").der() }
    let text = VehicleKeys.signed(
      encryption: try KeyFile.decryptionKey(keys[0]).encryptionKey, certificateRequest: request, issued: now,
      by: signing)
    return (text, signing.verificationKey.thumbprint, present.isEmpty)
  }
}
