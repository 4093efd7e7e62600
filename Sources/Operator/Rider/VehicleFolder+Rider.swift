package import Access
import Certificates
package import Domain
import Encoding
import FileFormats
import MQTT
import StepProtocol
import SystemIO

extension VehicleFolder {
  /// Makes everything that a rider needs, in `riders/NAME`, or gives a known rider another token.
  ///
  /// - Parameters:
  ///   - now: Unix time, from which the rider's certificate is valid.
  ///   - force: for a known rider, replaces the token, the certificate if it would end before the token, and the
  ///     vehicle's file if it has changed. Keys stay the same.
  package func provisionToken(_ plan: TokenPlan, now: Int64, force: Bool) throws -> TokenSummary {
    try checkFinished()
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
  package func grantAccess(_ plan: TokenPlan, to request: DeviceRequest, now: Int64) throws -> AccessFile {
    try checkFinished()
    try place.checkDevice(request.device, now: now)
    let signer = try AccessSigner(for: readVehicleFile(), of: place)
    let (file, entry) = try signer.sign(plan, to: request, now: now, days: nil)
    try place.change { $0.note(entry) }
    return file
  }
}

/// Makes riders' folders in a vehicle's.
struct TokenIssuer: ~Copyable {
  private let folder: VehicleFolder
  private let signer: AccessSigner

  /// Reads `operator/` and the files that it needs.
  init(of folder: VehicleFolder) throws {
    signer = try AccessSigner(for: folder.readVehicleFile(), of: folder.place)
    self.folder = folder
  }

  /// Makes a new rider's folder completely, or not at all.
  func admit(_ plan: TokenPlan, now: Int64) throws -> TokenSummary {
    let name = VehiclePaths.folder(of: plan.rider)
    let newKey = SigningKey()
    let device = plan.deviceKey ?? newKey.verificationKey
    try folder.place.checkDevice(device, now: now)
    let token = try signer.token(for: plan, device: device, now: now)
    var files = [
      NewFile(RiderPaths.vehicle, try vehicleFile(for: plan.rider).render()),
      NewFile(RiderPaths.token, token.signed(by: signer.tokenKey) + "\n", isPrivate: true),
    ]
    if plan.deviceKey == nil {
      files.append(NewFile(RiderPaths.deviceKey, newKey.jwk.text + "\n", isPrivate: true))
    }
    let issued = try about(folder.path(name)) {
      let key = try PrivateKey()
      let certificate = try signer.authority.issue(signer.role, to: key, now: now, lastingUntil: token.expires)
      files += [
        NewFile(RiderPaths.authorityCertificate, try signer.authority.certificate.pem()),
        NewFile(RiderPaths.certificate, try certificate.pem()),
        NewFile(RiderPaths.key, try key.pem(), isPrivate: true),
      ]
      return Ledger.IssuedNumber(number: certificate.serialNumber, end: try certificate.end())
    }

    try folder.place.change { $0.note(signer.entry(token, issued)) }
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
    try folder.place.checkDevice(device, now: now)
    let token = try signer.token(for: plan, device: device, now: now)
    var files: [NewFile] = []

    let certificatePath = "\(name)/\(RiderPaths.certificate)"
    let current = try folder.readCertificate(certificatePath)
    let key = try folder.readPrivateKey("\(name)/\(RiderPaths.key)")
    let ledger = try folder.place.ledger()
    let issued = try about(folder.path(certificatePath)) {
      let (number, end) = (current.serialNumber, try current.end())
      if end >= token.expires, !ledger.isRevoked(number) { return Ledger.IssuedNumber(number: number, end: end) }
      let renewed = try signer.authority.issue(signer.role, to: key, now: now, lastingUntil: token.expires)
      files.append(NewFile(certificatePath, try renewed.pem()))
      return Ledger.IssuedNumber(number: renewed.serialNumber, end: try renewed.end())
    }
    files.append(NewFile("\(name)/\(RiderPaths.token)", token.signed(by: signer.tokenKey) + "\n", isPrivate: true))
    // The operator's key may have changed, and the vehicle's file contains it.
    let copy = NewFile("\(name)/\(RiderPaths.vehicle)", try vehicleFile(for: plan.rider).render())
    if try Files.readRegular(folder.path(copy.name)) != copy.content { files.append(copy) }

    try folder.place.change { $0.note(signer.entry(token, issued)) }
    // Each file is useful without the others, so it is harmless if not all are replaced.
    for file in files { try Files.replaceForOwner(folder.path(file.name), with: file.content, mode: file.mode) }
    return TokenSummary(
      files: files.map(\.name), token: token,
      missingDeviceKey: isDeviceKeyHere ? nil : "\(name)/\(RiderPaths.deviceKey)", certificateEnd: issued.end)
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
    let vehicle = signer.vehicle
    let broker = try vehicle.present(vehicle.broker, "[broker]")
    return VehicleFile(
      path: RiderPaths.vehicle, vehicle: vehicle.vehicle.withoutTags, operatorKey: signer.tokenKey.verificationKey,
      topic: try vehicle.present(vehicle.topic, "topic"),
      broker: Broker(
        host: broker.host, port: broker.port,
        tls: .init(
          authority: RiderPaths.authorityCertificate,
          identity: .init(certificate: RiderPaths.certificate, key: RiderPaths.key))),
      controller: try vehicle.present(vehicle.controller, "[controller]"),
      rider: .init(name: rider.description, deviceKey: RiderPaths.deviceKey, token: RiderPaths.token))
  }
}

extension OperatorPlace {
  /// Throws if the device is revoked: a vehicle would refuse the token.
  fileprivate func checkDevice(_ device: VerificationKey, now: Int64) throws {
    if try ledger().isRevoked(device.thumbprint, at: now) { throw LedgerError.deviceRevoked(device.thumbprint) }
  }
}
