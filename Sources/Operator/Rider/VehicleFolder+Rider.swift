import SystemIO

extension VehicleFolder {
  /// The last second of the year 9999, Unix time: the last that certificates can write (RFC 5280 4.1.2.5).
  private static let lastSecond: Int64 = 253_402_300_799

  /// Makes all that a rider needs, in `riders/NAME`, or gives a rider who has it another token.
  ///
  /// - Parameters:
  ///   - now: Unix time, from which the rider's certificate is valid.
  ///   - force: when the rider is known, replaces the token, and the certificate if that would end before the token.
  ///     Keys stay as they are.
  package func provisionToken(_ plan: TokenPlan, now: Int64, force: Bool) throws(ProvisioningError) -> TokenSummary {
    try checkFinished()
    guard (0...Self.lastSecond).contains(plan.notBefore), plan.lifetime > 0,
      plan.lifetime <= Self.lastSecond - plan.notBefore
    else { throw .unusableLifetime }
    let issuer = try Operator(of: self)
    let rider = path(VehicleLayout.folder(of: plan.rider))
    guard Files.exists(rider) else { return try issuer.admit(plan, now: now) }
    guard force else { throw .riderExists(rider) }
    return try issuer.renew(plan, now: now)
  }
}
