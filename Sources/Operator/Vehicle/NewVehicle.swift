import Configuration
import Glibc
import Domain
import StepProtocol
import Encoding

/// All the files of a new vehicle, with new keys; nothing of it is written yet.
struct NewVehicle {
  let files: [NewFile]
  let summary: VehicleSummary

  /// - Parameter folder: where the vehicle will be; it exists.
  init(_ plan: VehiclePlan, in folder: VehicleFolder, now: Int64) throws(ProvisioningError) {
    let tokenKey = SigningKey()
    let encryptionKey = DecryptionKey()
    let signingKey = SigningKey()

    let vehicle = VehicleFile(
      path: VehicleLayout.vehicle, vehicle: plan.vehicle, operatorKey: tokenKey.verificationKey.bytes,
      topic: plan.topic,
      broker: Broker(host: plan.host.description, port: plan.port, ca: VehicleLayout.authorityCertificate),
      controller: ControllerKeys(
        encryption: encryptionKey.encryptionKey.bytes, signing: signingKey.verificationKey.bytes))
    let controller = ControllerFile(
      path: VehicleLayout.controller, vehicle: VehicleLayout.vehicle,
      broker: BrokerLogin(
        certificate: ClientCertificate(cert: VehicleLayout.controllerCertificate, key: VehicleLayout.controllerKey)),
      keys: KeyFiles(
        encryption: VehicleLayout.encryptionKey, signing: VehicleLayout.signingKey,
        operatorKey: tokenKey.verificationKey.bytes),
      policy: plan.policy, beacon: plan.beacon, tagKeys: VehicleLayout.tagKeys,
      servo: ServoSettings(driver: plan.servo.driver(for: plan.vehicle.steps)))
    let secrets = plan.vehicle.steps.map(\.id).filter { plan.beacon.steps[$0] != nil }.map(NewFile.beaconSecret)
    let broker = try BrokerConfiguration(folder: folder.path, host: plan.host, port: plan.port, owner: geteuid())

    let certificates: [NewFile]
    let end: Int64
    do throws(OpenSSLError) {
      (certificates, end) = try Self.certificates(for: plan, now: now)
    } catch {
      throw .openSSL(folder.path, error)
    }
    files =
      [
        NewFile(VehicleLayout.vehicle, vehicle.render()),
        NewFile(VehicleLayout.controller, controller.render()),
        NewFile(VehicleLayout.broker, broker.text),
        NewFile(VehicleLayout.accessList, AccessList(topic: plan.topic, steps: plan.vehicle.steps).text),
        NewFile(VehicleLayout.encryptionKey, encryptionKey.jwk.text + "\n", isPrivate: true),
        NewFile(VehicleLayout.signingKey, signingKey.jwk.text + "\n", isPrivate: true),
        NewFile(VehicleLayout.tokenKey, tokenKey.jwk.text + "\n", isPrivate: true),
        NewFile(VehicleLayout.tagKeys, TagKeyFile(path: VehicleLayout.tagKeys).render(), isPrivate: true),
      ] + secrets + certificates
    summary = VehicleSummary(
      files: files.map(\.name), tokenKey: tokenKey.verificationKey.thumbprint,
      encryptionKey: encryptionKey.thumbprint, signingKey: signingKey.verificationKey.thumbprint,
      certificatesEnd: end)
  }

  /// The authority, and what it issues to broker and controller; and when those two end, Unix time.
  private static func certificates(
    for plan: VehiclePlan, now: Int64
  ) throws(OpenSSLError) -> ([NewFile], end: Int64) {
    let authority = try CertificateAuthority(vehicleName: plan.vehicle.name, now: now)
    let brokerKey = try PrivateKey()
    let broker = try authority.issue(.broker(plan.host), to: brokerKey, now: now)
    let controllerKey = try PrivateKey()
    let controller = try authority.issue(.controller, to: controllerKey, now: now)
    let files = [
      NewFile(VehicleLayout.authorityCertificate, try authority.certificate.pem()),
      NewFile(VehicleLayout.authorityKey, try authority.key.pem(), isPrivate: true),
      NewFile(VehicleLayout.brokerCertificate, try broker.pem()),
      NewFile(VehicleLayout.brokerKey, try brokerKey.pem(), isPrivate: true),
      NewFile(VehicleLayout.controllerCertificate, try controller.pem()),
      NewFile(VehicleLayout.controllerKey, try controllerKey.pem(), isPrivate: true),
    ]
    return (files, min(try broker.end(), try controller.end()))
  }
}

extension VehiclePlan {
  /// A vehicle that sends what cannot be copied for long takes nothing less; any other takes whatever names a step.
  fileprivate var policy: AccessPolicy {
    vehicle.steps.allSatisfy { beaconAdapters[$0.id] != nil }
      ? AccessPolicy(proofs: [.beacon, .nfc], acceptsStatic: false) : AccessPolicy(proofs: Set(ProofMethod.allCases))
  }

  fileprivate var beacon: BeaconSettings {
    var steps: [StepID: BeaconSettings.Source] = [:]
    for (id, adapter) in beaconAdapters {
      steps[id] = BeaconSettings.Source(secret: VehicleLayout.beaconSecret(of: id), adapter: adapter)
    }
    return BeaconSettings(steps: steps)
  }
}

extension ServoKind {
  /// The settings to begin with.
  fileprivate func driver(for steps: [Step]) -> ServoSettings.Driver {
    switch self {
    case .simulated:
      return .simulated(log: ServoSettings.standardLog)
    case .pwm:
      let outputs = steps.enumerated().map { ($1.id, PWMSettings.Output(chip: 0, channel: $0)) }
      return .pwm(PWMSettings(outputs: Dictionary(uniqueKeysWithValues: outputs)))
    }
  }
}

extension NewFile {
  /// A new secret.
  fileprivate static func beaconSecret(for step: StepID) -> NewFile {
    NewFile(VehicleLayout.beaconSecret(of: step), BeaconSecret().jwk.text + "\n", isPrivate: true)
  }
}
