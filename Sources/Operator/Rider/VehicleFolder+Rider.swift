package import Access
import Certificates
package import Domain
import Encoding
import FileFormats
import MQTT
import StepProtocol
import SystemIO

extension TokenPlan {
  /// The last second of the year 9999, Unix time: the latest that certificates can express (RFC 5280 4.1.2.5).
  private static let lastSecond: Int64 = 253_402_300_799

  fileprivate func check() throws(ProvisioningError) {
    guard (0...Self.lastSecond).contains(notBefore), lifetime > 0, lifetime <= Self.lastSecond - notBefore else {
      throw .unusableLifetime
    }
  }
}

extension VehicleFolder {
  /// Makes everything that a rider needs, in `riders/NAME`, or gives a known rider another token.
  ///
  /// - Parameters:
  ///   - now: Unix time, from which the rider's certificate is valid.
  ///   - force: for a known rider, replaces the token, the certificate if it would end before the token, and the
  ///     vehicle's file if it has changed. Keys stay the same.
  package func provisionToken(_ plan: TokenPlan, now: Int64, force: Bool) throws -> TokenSummary {
    try checkFinished()
    try plan.check()
    let issuer = try TokenIssuer(of: self)
    let rider = path(VehiclePaths.folder(of: plan.rider))
    guard Files.exists(rider) else { return try issuer.admit(plan, now: now) }
    guard force else { throw ProvisioningError.riderExists(rider) }
    return try issuer.renew(plan, now: now)
  }

  /// The name that a device asks for. Anyone can ask for any name. So a name that the ledger has for another device
  /// needs the operator's consent.
  ///
  /// - Throws: `unusableName`, `nameTaken`.
  package func riderName(in request: DeviceRequest) throws -> RiderName {
    guard let name = RiderName(request.name) else { throw RequestError.unusableName(request.name) }
    try checkFinished()
    let device = request.device.thumbprint
    let isTaken = try place.ledger().tokens.contains { $0.rider == request.name && $0.device != device }
    guard !isTaken else { throw RequestError.nameTaken(request.name) }
    return name
  }

  /// Gives a token and a certificate to a device that has asked. The result contains nothing private, and only the
  /// ledger's entry stays here.
  ///
  /// - Parameters:
  ///   - plan: its `deviceKey` is ignored.
  ///   - now: Unix time, from which the certificate is valid.
  ///   - days: the least validity of the certificate; nil for a year.
  package func grantAccess(
    _ plan: TokenPlan, to request: DeviceRequest, now: Int64, days: Int64? = nil
  ) throws -> AccessFile {
    let issuer = try issuer(for: plan)
    try issuer.checkDevice(request.device, now: now)
    let (file, entry) = try issuer.sign(plan, to: request, now: now, days: days)
    try place.change { $0.note(entry) }
    return file
  }

  /// Signs what `grantAccess` gives, for a server, which notes it in its database and knows whether the device may
  /// have it.
  func signAccess(
    _ plan: TokenPlan, to request: DeviceRequest, now: Int64, days: Int64
  ) throws -> (file: AccessFile, entry: Ledger.Entry) {
    try issuer(for: plan).sign(plan, to: request, now: now, days: days)
  }

  private func issuer(for plan: TokenPlan) throws -> TokenIssuer {
    try checkFinished()
    try plan.check()
    return try TokenIssuer(of: self)
  }
}

/// Issues tokens, and the certificates that go with them.
struct TokenIssuer: ~Copyable {
  private let folder: VehicleFolder
  private let vehicle: VehicleFile
  private let tokenKey: SigningKey
  private let authority: CertificateAuthority

  /// Reads `operator/` and the files that it needs.
  init(of folder: VehicleFolder) throws {
    let vehicle = try folder.readVehicleFile()
    let tokenKey = try folder.place.keys().present
    authority = try VehicleFolder(folder.place.path).readAuthority()
    self.folder = folder
    self.vehicle = vehicle
    self.tokenKey = tokenKey
  }

  /// Makes a new rider's folder completely, or not at all.
  func admit(_ plan: TokenPlan, now: Int64) throws -> TokenSummary {
    let name = VehiclePaths.folder(of: plan.rider)
    let newKey = SigningKey()
    let device = plan.deviceKey ?? newKey.verificationKey
    try checkDevice(device, now: now)
    let token = try token(for: plan, device: device, now: now)
    var files = [
      NewFile(RiderPaths.vehicle, try vehicleFile(for: plan.rider).render()),
      NewFile(RiderPaths.token, token.signed(by: tokenKey) + "\n", isPrivate: true),
    ]
    if plan.deviceKey == nil {
      files.append(NewFile(RiderPaths.deviceKey, newKey.jwk.text + "\n", isPrivate: true))
    }
    let issued = try about(folder.path(name)) {
      let key = try PrivateKey()
      let certificate = try authority.issue(role, to: key, now: now, lastingUntil: token.expires)
      files += [
        NewFile(RiderPaths.authorityCertificate, try authority.certificate.pem()),
        NewFile(RiderPaths.certificate, try certificate.pem()),
        NewFile(RiderPaths.key, try key.pem(), isPrivate: true),
      ]
      return Ledger.IssuedNumber(number: certificate.serialNumber, end: try certificate.end())
    }

    try folder.place.change { $0.note(entry(token, issued)) }
    try Files.createFolder(folder.path(VehiclePaths.riders), mode: 0o700)
    // Left by an interrupted run, and useless.
    let place = folder.path(VehiclePaths.staging(of: plan.rider))
    try StagingFolder.remove(place)
    let staging = try StagingFolder(place)
    for file in files { try staging.write(file) }
    try staging.synchronize()
    try staging.become(folder.path(name))
    return TokenSummary(
      files: files.map { "\(name)/\($0.name)" }, token: token,
      missingDeviceKey: plan.deviceKey == nil ? nil : "\(name)/\(RiderPaths.deviceKey)",
      certificateEnd: issued.end)
  }

  /// Gives a rider another token, another certificate if the present one would end before the token, and the present
  /// vehicle file. The keys stay.
  func renew(_ plan: TokenPlan, now: Int64) throws -> TokenSummary {
    let name = VehiclePaths.folder(of: plan.rider)
    let (device, isDeviceKeyHere) = try device(for: plan)
    try checkDevice(device, now: now)
    let token = try token(for: plan, device: device, now: now)
    var files: [NewFile] = []

    let certificatePath = "\(name)/\(RiderPaths.certificate)"
    let current = try folder.readCertificate(certificatePath)
    let key = try folder.readPrivateKey("\(name)/\(RiderPaths.key)")
    let ledger = try folder.place.ledger()
    let issued = try about(folder.path(certificatePath)) {
      let (number, end) = (current.serialNumber, try current.end())
      if end >= token.expires, !ledger.isRevoked(number) { return Ledger.IssuedNumber(number: number, end: end) }
      let renewed = try authority.issue(role, to: key, now: now, lastingUntil: token.expires)
      files.append(NewFile(certificatePath, try renewed.pem()))
      return Ledger.IssuedNumber(number: renewed.serialNumber, end: try renewed.end())
    }
    files.append(NewFile("\(name)/\(RiderPaths.token)", token.signed(by: tokenKey) + "\n", isPrivate: true))
    // The operator's key may have changed, and the vehicle's file contains it.
    let copy = NewFile("\(name)/\(RiderPaths.vehicle)", try vehicleFile(for: plan.rider).render())
    if try Files.readRegular(folder.path(copy.name)) != copy.content { files.append(copy) }

    try folder.place.change { $0.note(entry(token, issued)) }
    // Each file is useful without the others, so it is harmless if not all are replaced.
    for file in files { try Files.replaceForOwner(folder.path(file.name), with: file.content, mode: file.mode) }
    return TokenSummary(
      files: files.map(\.name), token: token,
      missingDeviceKey: isDeviceKeyHere ? nil : "\(name)/\(RiderPaths.deviceKey)", certificateEnd: issued.end)
  }

  /// Signs a token and a certificate, and writes nothing.
  func sign(
    _ plan: TokenPlan, to request: DeviceRequest, now: Int64, days: Int64?
  ) throws -> (file: AccessFile, entry: Ledger.Entry) {
    let token = try token(for: plan, device: request.device, now: now)
    let asked = try about("the request") { try CertificateRequest(der: request.certificateRequest) }
    let (certificate, issued) = try about(folder.path(VehiclePaths.authorityCertificate)) {
      let certificate = try authority.issue(role, for: asked, now: now, days: days, lastingUntil: token.expires)
      return (
        try certificate.der(), Ledger.IssuedNumber(number: certificate.serialNumber, end: try certificate.end())
      )
    }
    let handover = "\(folder.place.path(VehiclePaths.handover))/\(vehicle.vehicle.uuid).jwt"
    let file = try about(folder.path) {
      try AccessFile(
        vehicle: folder.vehicleCode(now: now).text, token: token.signed(by: tokenKey), certificate: certificate,
        notice: Files.exists(handover) ? KeyFile.token(handover) : nil)
    }
    return (file, entry(token, issued))
  }

  private func entry(_ token: Token, _ certificate: Ledger.IssuedNumber) -> Ledger.Entry {
    Ledger.Entry(token, key: tokenKey.verificationKey.thumbprint, certificate: certificate)
  }

  /// Throws if the device is revoked: a vehicle would refuse the token.
  func checkDevice(_ device: VerificationKey, now: Int64) throws {
    if try folder.place.ledger().isRevoked(device.thumbprint, at: now) {
      throw LedgerError.deviceRevoked(device.thumbprint)
    }
  }

  private var role: CertificateRole { .rider(of: vehicle.vehicle.uuid) }

  private func token(for plan: TokenPlan, device: VerificationKey, now: Int64) throws -> Token {
    let known = vehicle.vehicle.steps.map(\.id)
    let asked = plan.steps ?? known
    guard !asked.isEmpty else { throw ProvisioningError.noSteps }
    for step in asked where !known.contains(step) { throw ProvisioningError.noSuchStep(step, known: known) }
    let validity = plan.notBefore..<plan.notBefore + plan.lifetime
    let time = try about(folder.path(VehiclePaths.authorityCertificate)) { try authority.time(now) }
    try time.check(validity)
    return Token(
      issuer: tokenKey.verificationKey.thumbprint.description, subject: plan.rider.description,
      vehicle: vehicle.vehicle.uuid, steps: known.filter(asked.contains),
      notBefore: validity.lowerBound, expires: validity.upperBound, device: device, issued: time.now)
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
    return try about(tokenPath) { (try Token(verifying: text, by: folder.place.keys().counting).device, false) }
  }

  func vehicleFile(for rider: RiderName) throws -> VehicleFile {
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
