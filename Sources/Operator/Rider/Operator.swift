import Configuration
import Domain
import StepProtocol
import Encoding
import SystemIO

/// Who says who may ride: issues tokens, and the certificates that go with them.
struct Operator: ~Copyable {
  private let folder: VehicleFolder
  private let vehicle: VehicleFile
  private let tokenKey: SigningKey
  private let authority: CertificateAuthority

  /// Reads `operator/` and what belongs to it.
  init(of folder: VehicleFolder) throws(ProvisioningError) {
    let vehicle = try folder.readVehicleFile()
    let tokenKey = try rethrowing { () throws(ConfigurationError) in
      try KeyFile.signingKey(folder.path(VehicleLayout.tokenKey))
    }
    authority = try folder.readAuthority()
    self.folder = folder
    self.vehicle = vehicle
    self.tokenKey = tokenKey
  }

  /// Makes a new rider's folder: all of it, or nothing.
  func admit(_ plan: TokenPlan, now: Int64) throws(ProvisioningError) -> TokenSummary {
    let name = VehicleLayout.folder(of: plan.rider)
    let newKey = SigningKey()
    let token = try token(for: plan, device: plan.deviceKey ?? newKey.verificationKey)
    var files = [
      NewFile(RiderLayout.vehicle, try vehicleFile(for: plan.rider).render()),
      NewFile(RiderLayout.token, token.signed(by: tokenKey) + "\n", isPrivate: true),
    ]
    if plan.deviceKey == nil {
      files.append(NewFile(RiderLayout.deviceKey, newKey.jwk.text + "\n", isPrivate: true))
    }
    let certificateEnd: Int64
    do throws(OpenSSLError) {
      let key = try PrivateKey()
      let certificate = try authority.issue(.rider, to: key, now: now, lastingUntil: token.expires)
      certificateEnd = try certificate.end()
      files += [
        NewFile(RiderLayout.authorityCertificate, try authority.certificate.pem()),
        NewFile(RiderLayout.certificate, try certificate.pem()),
        NewFile(RiderLayout.key, try key.pem(), isPrivate: true),
      ]
    } catch {
      throw .openSSL(folder.path(name), error)
    }

    try rethrowing { () throws(SystemError) in
      try Files.createFolder(folder.path(VehicleLayout.riders), mode: 0o700)
      // What an interrupted run left here is of no use to anybody.
      let place = folder.path(VehicleLayout.staging(of: plan.rider))
      try StagingFolder.remove(place)
      let staging = try StagingFolder(place)
      for file in files { try staging.write(file) }
      try staging.synchronize()
      try staging.become(folder.path(name))
    }
    return TokenSummary(
      files: files.map { "\(name)/\($0.name)" }, token: token,
      missingDeviceKey: plan.deviceKey == nil ? nil : "\(name)/\(RiderLayout.deviceKey)",
      certificateEnd: certificateEnd)
  }

  /// Gives a rider another token, and another certificate if theirs would end before it. The keys stay.
  func renew(_ plan: TokenPlan, now: Int64) throws(ProvisioningError) -> TokenSummary {
    let name = VehicleLayout.folder(of: plan.rider)
    let (device, isDeviceKeyHere) = try device(for: plan)
    let token = try token(for: plan, device: device)
    var files: [NewFile] = []

    let certificatePath = "\(name)/\(RiderLayout.certificate)"
    let current = try folder.readCertificate(certificatePath)
    let key = try folder.readPrivateKey("\(name)/\(RiderLayout.key)")
    var certificateEnd: Int64
    do throws(OpenSSLError) {
      certificateEnd = try current.end()
      if certificateEnd < token.expires {
        let renewed = try authority.issue(.rider, to: key, now: now, lastingUntil: token.expires)
        certificateEnd = try renewed.end()
        files.append(NewFile(certificatePath, try renewed.pem()))
      }
    } catch {
      throw .openSSL(folder.path(certificatePath), error)
    }
    files.append(NewFile("\(name)/\(RiderLayout.token)", token.signed(by: tokenKey) + "\n", isPrivate: true))

    // Each is of use without the other, so that it does not matter if only the first is replaced.
    try rethrowing { () throws(SystemError) in
      for file in files { try Files.replace(folder.path(file.name), with: file.content, mode: file.mode) }
    }
    return TokenSummary(
      files: files.map(\.name), token: token,
      missingDeviceKey: isDeviceKeyHere ? nil : "\(name)/\(RiderLayout.deviceKey)", certificateEnd: certificateEnd)
  }

  private func token(for plan: TokenPlan, device: VerificationKey) throws(ProvisioningError) -> Token {
    let known = vehicle.vehicle.steps.map(\.id)
    let asked = plan.steps ?? known
    guard !asked.isEmpty else { throw .noSteps }
    for step in asked where !known.contains(step) { throw .noSuchStep(step, known: known) }
    let expires = plan.notBefore + plan.lifetime
    let end = try rethrowing(about: folder.path(VehicleLayout.authorityCertificate)) { () throws(OpenSSLError) in
      try authority.certificate.end()
    }
    guard expires <= end else { throw .outlivesAuthority(end: end) }
    return Token(
      issuer: tokenKey.verificationKey.thumbprint.description, subject: plan.rider.description,
      vehicle: vehicle.vehicle.uuid, steps: known.filter(asked.contains),
      notBefore: plan.notBefore, expires: expires, device: device)
  }

  /// The key that a known rider's next token is bound to, and whether its private part is in the rider's folder.
  private func device(for plan: TokenPlan) throws(ProvisioningError) -> (VerificationKey, isHere: Bool) {
    let name = VehicleLayout.folder(of: plan.rider)
    let keyPath = folder.path("\(name)/\(RiderLayout.deviceKey)")
    if Files.exists(keyPath) {
      let key = try rethrowing { () throws(ConfigurationError) in try KeyFile.signingKey(keyPath) }.verificationKey
      guard plan.deviceKey == nil || plan.deviceKey == key else { throw .otherDevice(keyPath) }
      return (key, true)
    }
    if let asked = plan.deviceKey { return (asked, false) }
    let tokenPath = folder.path("\(name)/\(RiderLayout.token)")
    let text = try rethrowing { () throws(ConfigurationError) in try KeyFile.token(tokenPath) }
    do throws(ProtocolError) {
      return (try Token(verifying: text, by: tokenKey.verificationKey).device, false)
    } catch {
      throw .token(tokenPath, error)
    }
  }

  private func vehicleFile(for rider: RiderName) throws(ProvisioningError) -> VehicleFile {
    let broker = try folder.present(vehicle.broker, "[broker]")
    return VehicleFile(
      path: RiderLayout.vehicle, vehicle: vehicle.vehicle.withoutTags, operatorKey: tokenKey.verificationKey.bytes,
      topic: try folder.present(vehicle.topic, "topic"),
      broker: Broker(host: broker.host, port: broker.port, ca: RiderLayout.authorityCertificate),
      certificate: ClientCertificate(cert: RiderLayout.certificate, key: RiderLayout.key),
      controller: try folder.present(vehicle.controller, "[controller]"),
      rider: Rider(name: rider.description, deviceKey: RiderLayout.deviceKey, token: RiderLayout.token))
  }
}
