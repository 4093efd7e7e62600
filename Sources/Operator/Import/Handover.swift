package import Configuration
import Domain
package import StepProtocol
import SystemIO

/// A vehicle as an operator hands it over: what its file is to say, and the files that are to lie beside it.
package struct Handover: Sendable {
  /// Its paths are names in `files`.
  package let vehicleFile: VehicleFile
  /// Whoever vouches for the vehicle, where that is said.
  package let operatorKey: VerificationKey?
  /// When it was signed, Unix time; nil for what is not.
  package let issued: Int64?
  let files: [NewFile]

  /// Whether `operatorKey` has signed what is said of the vehicle, and is not only named.
  package var isSigned: Bool { issued != nil }

  /// What a vehicle's code says, which `operatorKey` has signed.
  package init(_ code: VehicleCode, signedBy operatorKey: VerificationKey) throws(ProvisioningError) {
    let authority = try rethrowing(about: "the code's certificate") { () throws(OpenSSLError) in
      try Certificate(der: code.authority).pem()
    }
    files = [NewFile(RiderLayout.authorityCertificate, authority)]
    vehicleFile = VehicleFile(
      path: RiderLayout.vehicle, vehicle: code.vehicle, operatorKey: operatorKey.bytes, signed: code.issued,
      topic: code.topic, broker: Broker(host: code.host, port: code.port, ca: RiderLayout.authorityCertificate),
      controller: ControllerKeys(encryption: code.encryptionKey.bytes, signing: code.signingKey.bytes))
    self.operatorKey = operatorKey
    issued = code.issued
  }

  /// A vehicle file and all that it names, as `provision token` makes them.
  package init(reading path: String) throws(ProvisioningError) {
    var file = try rethrowing { () throws(ConfigurationError) in try VehicleFile(reading: path) }
    var files: [NewFile] = []
    if let broker = file.broker {
      files.append(NewFile(RiderLayout.authorityCertificate, try Self.certificate(broker.ca)))
      file.broker?.ca = RiderLayout.authorityCertificate
    }
    if let certificate = file.certificate {
      files.append(NewFile(RiderLayout.certificate, try Self.certificate(certificate.cert)))
      files.append(NewFile(RiderLayout.key, try Self.read(certificate.key), isPrivate: true))
      file.certificate = ClientCertificate(cert: RiderLayout.certificate, key: RiderLayout.key)
    }
    operatorKey = try Self.operatorKey(of: file)
    if let rider = file.rider {
      try Self.check(rider, of: file.vehicle.uuid, by: operatorKey)
      files.append(NewFile(RiderLayout.deviceKey, try Self.read(rider.deviceKey), isPrivate: true))
      files.append(NewFile(RiderLayout.token, try Self.read(rider.token), isPrivate: true))
      file.rider = Rider(name: rider.name, deviceKey: RiderLayout.deviceKey, token: RiderLayout.token)
    }
    file.path = RiderLayout.vehicle
    // Anybody can write that.
    file.signed = nil
    vehicleFile = file
    issued = nil
    self.files = files
  }

  /// What is said otherwise of a vehicle that is known, in words for people; not of its rider, whose token is signed.
  func changes(of known: VehicleFile) -> [String] {
    let new = vehicleFile
    // What riders measure and register is their own.
    func steps(_ file: VehicleFile) -> [Step] {
      file.vehicle.steps.map { Step(id: $0.id, side: $0.side, major: $0.major, minor: $0.minor) }
    }
    let authority = files.first { $0.name == new.broker?.ca }
    return [
      known.vehicle.name != new.vehicle.name ? "name" : nil,
      steps(known) != steps(new) ? "steps" : nil,
      known.topic != new.topic ? "topic" : nil,
      known.broker?.host != new.broker?.host || known.broker?.port != new.broker?.port ? "broker" : nil,
      known.broker.flatMap { try? Files.read($0.ca) } != authority?.content ? "broker's authority" : nil,
      known.controller != new.controller ? "controller's keys" : nil,
    ].compactMap { $0 }
  }

  /// What is new of the rider's own access: in words for people.
  func accessChanges(of known: VehicleFile) -> [String] {
    let new = vehicleFile
    func isNew(_ name: String?, in place: String?) -> Bool {
      guard let file = files.first(where: { $0.name == name }) else { return false }
      return place.flatMap { try? Files.read($0) } != file.content
    }
    let (certificate, before) = (new.certificate, known.certificate)
    return [
      new.rider != nil && new.rider?.name != known.rider?.name ? "rider" : nil,
      isNew(new.rider?.token, in: known.rider?.token) ? "token" : nil,
      isNew(new.rider?.deviceKey, in: known.rider?.deviceKey) ? "device key" : nil,
      isNew(certificate?.cert, in: before?.cert) || isNew(certificate?.key, in: before?.key) ? "certificate" : nil,
    ].compactMap { $0 }
  }

  /// Looked at, because everyone may read the copy: what a folder names as a certificate can be any file of the user's.
  private static func certificate(_ path: String) throws(ProvisioningError) -> [UInt8] {
    let pem = try read(path)
    _ = try rethrowing(about: path) { () throws(OpenSSLError) in try Certificate(pem: pem).end() }
    return pem
  }

  private static func read(_ path: String) throws(ProvisioningError) -> [UInt8] {
    try rethrowing { () throws(SystemError) in try Files.read(path, limit: 1 << 16) }
  }

  private static func operatorKey(of file: VehicleFile) throws(ProvisioningError) -> VerificationKey? {
    guard let bytes = file.operatorKey else { return nil }
    do throws(KeyError) { return try VerificationKey(bytes) } catch {
      throw .configuration(ConfigurationError(file.path, "operator: \(error)"))
    }
  }

  /// A token of somebody else, for something else or for another device would be found out only in front of the vehicle.
  private static func check(_ rider: Rider, of vehicle: UUID, by operatorKey: VerificationKey?)
    throws(ProvisioningError)
  {
    let text = try rethrowing { () throws(ConfigurationError) in try KeyFile.token(rider.token) }
    let token: Token
    do throws(ProtocolError) {
      token = if let operatorKey { try Token(verifying: text, by: operatorKey) } else { try Token(unverified: text) }
      guard token.vehicle == vehicle else { throw .malformed("the token is for another vehicle") }
    } catch {
      throw .token(rider.token, error)
    }
    try rethrowing { () throws(ConfigurationError) in
      try rider.check(token, isBoundTo: KeyFile.verificationKey(rider.deviceKey))
    }
  }
}
