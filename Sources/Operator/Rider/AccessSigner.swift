import Access
import Certificates
import Domain
import FileFormats
import StepProtocol
import SystemIO

/// Signs tokens for a vehicle, and the certificates that go with them. It writes nothing.
struct AccessSigner: ~Copyable {
  let vehicle: VehicleFile
  let tokenKey: SigningKey
  let authority: CertificateAuthority
  private let place: OperatorPlace

  /// Reads the operator's keys.
  init(for vehicle: VehicleFile, of place: OperatorPlace) throws {
    let tokenKey = try place.keys().present
    authority = try VehicleFolder(place.path).readAuthority()
    self.vehicle = vehicle
    self.tokenKey = tokenKey
    self.place = place
  }

  /// Signs a token and a certificate.
  ///
  /// - Parameter days: the least validity of the certificate; nil for a year.
  func sign(
    _ plan: TokenPlan, to request: DeviceRequest, now: Int64, days: Int64?
  ) throws -> (file: AccessFile, entry: Ledger.Entry) {
    let token = try token(for: plan, device: request.device, now: now)
    let asked = try about("the request") { try CertificateRequest(der: request.certificateRequest) }
    let (certificate, issued) = try about(place.path(VehiclePaths.authorityCertificate)) {
      let certificate = try authority.issue(role, for: asked, now: now, days: days, lastingUntil: token.expires)
      return (
        try certificate.der(), Ledger.IssuedNumber(number: certificate.serialNumber, end: try certificate.end())
      )
    }
    let handover = "\(place.path(VehiclePaths.handover))/\(vehicle.vehicle.uuid).jwt"
    let file = try about(place.path) {
      try AccessFile(
        vehicle: vehicle.code(by: tokenKey, at: authority.time(now)), token: token.signed(by: tokenKey),
        certificate: certificate, notice: Files.exists(handover) ? KeyFile.token(handover) : nil)
    }
    return (file, entry(token, issued))
  }

  func entry(_ token: Token, _ certificate: Ledger.IssuedNumber) -> Ledger.Entry {
    Ledger.Entry(token, key: tokenKey.verificationKey.thumbprint, certificate: certificate)
  }

  var role: CertificateRole { .client(.rider(of: vehicle.vehicle.uuid)) }

  /// - Throws: `ProvisioningError`, `ClockError`.
  func token(for plan: TokenPlan, device: VerificationKey, now: Int64) throws -> Token {
    try plan.check()
    let known = vehicle.vehicle.steps.map(\.id)
    let asked = plan.steps ?? known
    guard !asked.isEmpty else { throw ProvisioningError.noSteps }
    for step in asked where !known.contains(step) { throw ProvisioningError.noSuchStep(step, known: known) }
    let validity = plan.notBefore..<plan.notBefore + plan.lifetime
    let time = try about(place.path(VehiclePaths.authorityCertificate)) { try authority.time(now) }
    try time.check(validity)
    return Token(
      issuer: tokenKey.verificationKey.thumbprint.description, subject: plan.rider.description,
      vehicle: vehicle.vehicle.uuid, steps: known.filter(asked.contains),
      notBefore: validity.lowerBound, expires: validity.upperBound, device: device, issued: time.now)
  }
}

extension TokenPlan {
  /// The last second of the year 9999, Unix time: the latest that certificates can express (RFC 5280 4.1.2.5).
  private static let lastSecond: Int64 = 253_402_300_799

  fileprivate func check() throws(ProvisioningError) {
    guard (0...Self.lastSecond).contains(notBefore), lifetime > 0, lifetime <= Self.lastSecond - notBefore else {
      throw .unusableLifetime
    }
  }
}
