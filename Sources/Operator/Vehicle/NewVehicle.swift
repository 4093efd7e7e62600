import Access
import Bluetooth
import Certificates
import Domain
import Encoding
import FileFormats
import MQTT
import StepController
package import StepProtocol
import StepdConfiguration
import SystemIO

/// All files of a new vehicle, with new keys. Nothing is written yet.
struct NewVehicle {
  let files: [NewFile]
  let summary: VehicleSummary
  /// Whether an operator of its own is made with the vehicle.
  let hasOperator: Bool

  /// - Parameters:
  ///   - folder: the vehicle's future folder, which exists.
  ///   - owner: who admits the vehicle.
  init(_ plan: VehiclePlan, in folder: VehicleFolder, of owner: VehicleOwner, now: Int64) throws {
    hasOperator = if case .itself = owner { true } else { false }
    let keys = try ControllerKeys(owner.importedKeys, in: folder)
    let enrolment = VehicleEnrolment(
      vehicle: plan.vehicle, topic: plan.topic, encryptionKey: keys.encryption, signingKey: keys.signing,
      certificateRequest: keys.certificateRequest)
    let admission: VehicleAdmission
    var (operatorFiles, end): ([NewFile], Int64) = ([], .max)
    switch owner {
    case .itself(let broker):
      let access = AccessList([VehicleTopics(of: plan.vehicle.uuid, topic: plan.topic, steps: plan.vehicle.steps)])
      let record = BrokerRecord(address: broker, plugin: nil)
      let new = try NewOperator(named: plan.vehicle.name, in: folder.path, at: record, access, now: now)
      admission = try new.admitter.admit(enrolment, now: now)
      (operatorFiles, end) = (new.files, new.brokerEnd)
    case .place(let place, _): admission = try place.admitter().admit(enrolment, now: now)
    case .server(let enrol):
      // The server takes the code once. It would be lost if this vehicle then could not use the certificate.
      _ = try IssueTime(now)
      admission = try enrol(enrolment)
    }
    let certificates = try about("the operator's answer") { try keys.certificates(admission) }
    // The steps are unchanged, so this cannot fail.
    let vehicle = try! Vehicle(name: admission.name, uuid: plan.vehicle.uuid, steps: plan.vehicle.steps)
    let file = VehicleFile(
      path: VehiclePaths.vehicle, vehicle: vehicle, operatorKey: admission.keys[0], topic: plan.topic,
      broker: admission.broker.broker(), controller: .init(encryption: keys.encryption, signing: keys.signing))
    let controller = ControllerFile(
      path: VehiclePaths.controller, vehicle: VehiclePaths.vehicle,
      broker: .init(
        identity: .init(certificate: VehiclePaths.controllerCertificate, key: VehiclePaths.controllerKey)),
      keys: .init(
        encryption: VehiclePaths.encryptionKey, signing: VehiclePaths.signingKey, operatorKey: admission.keys[0]),
      policy: plan.policy, beacons: plan.beacons, tagKeys: VehiclePaths.tagKeys,
      servo: plan.servo.hardware(for: vehicle.steps), trafficGuard: plan.trafficGuard)
    let secrets = vehicle.steps.map(\.id).filter { plan.beacons[$0] != nil }.map(NewFile.beaconSecret)
    // An operator's files have the authority's certificate, too.
    let others = operatorFiles.filter { $0.name != VehiclePaths.authorityCertificate }
    files =
      [
        NewFile(VehiclePaths.vehicle, file.render()),
        NewFile(VehiclePaths.controller, controller.render()),
        NewFile(VehiclePaths.tagKeys, TagKeyFile(path: VehiclePaths.tagKeys).render(), isPrivate: true),
      ] + keys.files + secrets + certificates.files + others
    summary = VehicleSummary(
      files: files.map(\.name), vehicle: vehicle, broker: admission.broker, tokenKey: admission.keys[0].thumbprint,
      encryptionKey: keys.encryption.thumbprint, signingKey: keys.signing.thumbprint,
      certificatesEnd: min(end, certificates.end))
  }
}

/// A controller's keys, for its protocol and for its connections.
private struct ControllerKeys {
  let encryption: EncryptionKey
  let signing: VerificationKey
  /// PKCS #10, DER.
  let certificateRequest: [UInt8]
  /// The private keys; empty if they were made on the vehicle.
  let files: [NewFile]
  /// The private key of its connections, PEM; nil if it was made on the vehicle.
  private let key: [UInt8]?

  /// - Parameter imported: the public keys that were made on the vehicle; nil to make new ones here.
  init(_ imported: VehicleKeys?, in folder: VehicleFolder) throws {
    if let imported {
      (encryption, signing, files) = (imported.encryption, imported.signing, [])
      (certificateRequest, key) = (imported.certificateRequest, nil)
      return
    }
    let (decryption, statements) = (DecryptionKey(), SigningKey())
    let (key, request) = try about(folder.path) {
      let key = try PrivateKey()
      return (try key.pem(), try CertificateRequest(for: key, name: "controller").der())
    }
    (self.key, certificateRequest) = (key, request)
    (encryption, signing) = (decryption.encryptionKey, statements.verificationKey)
    files = [
      NewFile(VehiclePaths.encryptionKey, decryption.jwk.text + "\n", isPrivate: true),
      NewFile(VehiclePaths.signingKey, statements.jwk.text + "\n", isPrivate: true),
      NewFile(VehiclePaths.controllerKey, key, isPrivate: true),
    ]
  }

  /// The certificates that an operator has issued, checked, and when the controller's ends, Unix time.
  func certificates(_ admission: VehicleAdmission) throws(OpenSSLError) -> (files: [NewFile], end: Int64) {
    let certificate = try Certificate(pem: admission.certificate)
    let authority = try Certificate(pem: admission.authority)
    if let key { try certificate.require(isFor: PrivateKey(pem: key)) }
    try certificate.require(isFrom: authority)
    return (
      [
        NewFile(VehiclePaths.authorityCertificate, try authority.pem()),
        NewFile(VehiclePaths.controllerCertificate, try certificate.pem()),
      ], try certificate.end()
    )
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
    case .pwm: .pwm(PWMOutputs(channels: channels.mapValues { PWMChannel(chip: .number(0), channel: $0) }))
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
    let time = try IssueTime(now)
    let keys = [VehiclePaths.encryptionKey, VehiclePaths.signingKey, VehiclePaths.controllerKey].map(path)
    let present = keys.filter { Files.exists($0) }
    if present.isEmpty {
      try Files.createFolder(path(VehiclePaths.keys), mode: 0o700)
      try Files.createFolder(path(VehiclePaths.tls), mode: 0o755)
      let pem = try about(path) { try PrivateKey().pem() }
      let contents = [Array((DecryptionKey().jwk.text + "\n").utf8), Array((SigningKey().jwk.text + "\n").utf8), pem]
      for (file, content) in zip(keys, contents) { try Files.create(file, with: content, mode: 0o600) }
    } else if present.count < keys.count {
      throw ProvisioningError.incompleteKeys(present[0])
    }
    let signing = try KeyFile.signingKey(keys[1])
    let key = try readPrivateKey(VehiclePaths.controllerKey)
    let request = try about(keys[2]) { try CertificateRequest(for: key, name: "controller").der() }
    let text = VehicleKeys.signed(
      encryption: try KeyFile.decryptionKey(keys[0]).encryptionKey, certificateRequest: request, issued: time.now,
      by: signing)
    return (text, signing.verificationKey.thumbprint, present.isEmpty)
  }
}
