import Configuration
import Domain
import Encoding
import MQTT
import StepProtocol
import SystemIO

extension VehicleFolder {
  /// The last second of the year 9999, Unix time: the last that certificates can write (RFC 5280 4.1.2.5).
  private static let lastSecond: Int64 = 253_402_300_799

  /// Makes all that a rider needs, in `riders/NAME`, or gives a known rider another token.
  ///
  /// - Parameters:
  ///   - now: Unix time, from which the rider's certificate is valid.
  ///   - force: when the rider is known, replaces the token, and the certificate if that would end before the token.
  ///     Keys stay as they are.
  package func provisionToken(_ plan: TokenPlan, now: Int64, force: Bool) throws -> TokenSummary {
    try checkFinished()
    guard (0...Self.lastSecond).contains(plan.notBefore), plan.lifetime > 0,
      plan.lifetime <= Self.lastSecond - plan.notBefore
    else { throw ProvisioningError.unusableLifetime }
    let issuer = try Operator(of: self)
    let rider = path(VehiclePaths.folder(of: plan.rider))
    guard Files.exists(rider) else { return try issuer.admit(plan, now: now) }
    guard force else { throw ProvisioningError.riderExists(rider) }
    return try issuer.renew(plan, now: now)
  }
}

/// Says who may ride: issues tokens, and the certificates that go with them.
struct Operator: ~Copyable {
  private let folder: VehicleFolder
  private let vehicle: VehicleFile
  private let tokenKey: SigningKey
  private let authority: CertificateAuthority

  /// Reads `operator/` and what belongs to it.
  init(of folder: VehicleFolder) throws {
    let vehicle = try folder.readVehicleFile()
    let tokenKey = try KeyFile.signingKey(folder.path(VehiclePaths.tokenKey))
    authority = try folder.readAuthority()
    self.folder = folder
    self.vehicle = vehicle
    self.tokenKey = tokenKey
  }

  /// Makes a new rider's folder: all of it, or nothing.
  func admit(_ plan: TokenPlan, now: Int64) throws -> TokenSummary {
    let name = VehiclePaths.folder(of: plan.rider)
    let newKey = SigningKey()
    let token = try token(for: plan, device: plan.deviceKey ?? newKey.verificationKey)
    var files = [
      NewFile(RiderPaths.vehicle, try vehicleFile(for: plan.rider).render()),
      NewFile(RiderPaths.token, token.signed(by: tokenKey) + "\n", isPrivate: true),
    ]
    if plan.deviceKey == nil {
      files.append(NewFile(RiderPaths.deviceKey, newKey.jwk.text + "\n", isPrivate: true))
    }
    let certificateEnd = try about(folder.path(name)) {
      let key = try PrivateKey()
      let certificate = try authority.issue(.rider, to: key, now: now, lastingUntil: token.expires)
      files += [
        NewFile(RiderPaths.authorityCertificate, try authority.certificate.pem()),
        NewFile(RiderPaths.certificate, try certificate.pem()),
        NewFile(RiderPaths.key, try key.pem(), isPrivate: true),
      ]
      return try certificate.end()
    }

    try Files.createFolder(folder.path(VehiclePaths.riders), mode: 0o700)
    // What an interrupted run left here is useless.
    let place = folder.path(VehiclePaths.staging(of: plan.rider))
    try StagingFolder.remove(place)
    let staging = try StagingFolder(place)
    for file in files { try staging.write(file) }
    try staging.synchronize()
    try staging.become(folder.path(name))
    return TokenSummary(
      files: files.map { "\(name)/\($0.name)" }, token: token,
      missingDeviceKey: plan.deviceKey == nil ? nil : "\(name)/\(RiderPaths.deviceKey)",
      certificateEnd: certificateEnd)
  }

  /// Gives a rider another token, and another certificate if theirs would end before it. The keys stay.
  func renew(_ plan: TokenPlan, now: Int64) throws -> TokenSummary {
    let name = VehiclePaths.folder(of: plan.rider)
    let (device, isDeviceKeyHere) = try device(for: plan)
    let token = try token(for: plan, device: device)
    var files: [NewFile] = []

    let certificatePath = "\(name)/\(RiderPaths.certificate)"
    let current = try folder.readCertificate(certificatePath)
    let key = try folder.readPrivateKey("\(name)/\(RiderPaths.key)")
    let certificateEnd = try about(folder.path(certificatePath)) {
      let end = try current.end()
      if end >= token.expires { return end }
      let renewed = try authority.issue(.rider, to: key, now: now, lastingUntil: token.expires)
      files.append(NewFile(certificatePath, try renewed.pem()))
      return try renewed.end()
    }
    files.append(NewFile("\(name)/\(RiderPaths.token)", token.signed(by: tokenKey) + "\n", isPrivate: true))

    // The certificate and the token are useful without each other: it is harmless if only one is replaced.
    for file in files { try Files.replace(folder.path(file.name), with: file.content, mode: file.mode) }
    return TokenSummary(
      files: files.map(\.name), token: token,
      missingDeviceKey: isDeviceKeyHere ? nil : "\(name)/\(RiderPaths.deviceKey)", certificateEnd: certificateEnd)
  }

  private func token(for plan: TokenPlan, device: VerificationKey) throws -> Token {
    let known = vehicle.vehicle.steps.map(\.id)
    let asked = plan.steps ?? known
    guard !asked.isEmpty else { throw ProvisioningError.noSteps }
    for step in asked where !known.contains(step) { throw ProvisioningError.noSuchStep(step, known: known) }
    let expires = plan.notBefore + plan.lifetime
    let end = try about(folder.path(VehiclePaths.authorityCertificate)) {
      try authority.certificate.end()
    }
    guard expires <= end else { throw ProvisioningError.outlivesAuthority(end: end) }
    return Token(
      issuer: tokenKey.verificationKey.thumbprint.description, subject: plan.rider.description,
      vehicle: vehicle.vehicle.uuid, steps: known.filter(asked.contains),
      notBefore: plan.notBefore, expires: expires, device: device)
  }

  /// The device key for a known rider's next token, and whether its private part is in the rider's folder.
  private func device(for plan: TokenPlan) throws -> (VerificationKey, isHere: Bool) {
    let name = VehiclePaths.folder(of: plan.rider)
    let keyPath = folder.path("\(name)/\(RiderPaths.deviceKey)")
    if Files.exists(keyPath) {
      let key = try KeyFile.signingKey(keyPath).verificationKey
      guard plan.deviceKey == nil || plan.deviceKey == key else { throw ProvisioningError.otherDevice(keyPath) }
      return (key, true)
    }
    if let asked = plan.deviceKey { return (asked, false) }
    let tokenPath = folder.path("\(name)/\(RiderPaths.token)")
    let text = try KeyFile.token(tokenPath)
    return try about(tokenPath) { (try Token(verifying: text, by: tokenKey.verificationKey).device, false) }
  }

  private func vehicleFile(for rider: RiderName) throws -> VehicleFile {
    let broker = try folder.present(vehicle.broker, "[broker]")
    return VehicleFile(
      path: RiderPaths.vehicle, vehicle: vehicle.vehicle.withoutTags, operatorKey: tokenKey.verificationKey,
      topic: try folder.present(vehicle.topic, "topic"),
      broker: Broker(
        host: broker.host, port: broker.port,
        tls: .init(
          authority: RiderPaths.authorityCertificate,
          identity: .init(certificate: RiderPaths.certificate, key: RiderPaths.key))),
      controller: try folder.present(vehicle.controller, "[controller]"),
      rider: .init(name: rider.description, deviceKey: RiderPaths.deviceKey, token: RiderPaths.token))
  }
}
