package import Access
import Certificates
import Domain
import Encoding
package import FileFormats
import Glibc
import MQTT
package import StepProtocol
import SystemIO

/// A vehicle from its operator, before this user knows it: its file, and the files that it needs.
package struct ImportedVehicle: Sendable {
  /// Its paths are names in `files`.
  package private(set) var vehicleFile: VehicleFile
  /// The operator that vouches for the vehicle; nil if none is named.
  package let operatorKey: VerificationKey?
  /// When it was signed, Unix time; nil when it is not signed.
  package let issued: Int64?
  private(set) var files: [NewFile]
  /// The access file that it comes from, if it does.
  private(set) var access: AccessFile?

  /// Whether the holder of `operatorKey` has signed it, rather than only being named in it.
  package var isSigned: Bool { issued != nil }

  /// Whether it is from the operator with that key: it names the key, or a key that this one vouches for.
  func isVouched(by known: VerificationKey) -> Bool {
    operatorKey == known || access?.isVouched(by: known) == true
  }

  /// From a vehicle's code, verified by `operatorKey`.
  package init(_ code: VehicleCode, signedBy operatorKey: VerificationKey) throws {
    let authority = try about("the code's certificate") {
      let authority = try Certificate(der: code.authority)
      try authority.requireAuthority()
      return try authority.pem()
    }
    self.init(code, signedBy: operatorKey, authority: authority)
  }

  /// - Parameter authority: the code's certificate, PEM.
  private init(_ code: VehicleCode, signedBy operatorKey: VerificationKey, authority: [UInt8]) {
    files = [NewFile(RiderPaths.authorityCertificate, authority)]
    vehicleFile = VehicleFile(
      path: RiderPaths.vehicle, vehicle: code.vehicle, operatorKey: operatorKey, signed: code.issued,
      topic: code.topic,
      broker: Broker(
        host: code.host, port: code.port, tls: .init(authority: RiderPaths.authorityCertificate, identity: nil)),
      controller: .init(encryption: code.encryptionKey, signing: code.signingKey))
    self.operatorKey = operatorKey
    issued = code.issued
  }

  /// From an access file for this device.
  ///
  /// - Parameter identity: the device's, if it is already known.
  /// - Throws: `StoreError` if the file is for another device.
  package init(
    _ access: AccessFile, on device: EnrolledDevice, _ identity: EnrolledDevice.Identity? = nil
  ) throws {
    try about("the access file's notice") { try access.checkNotice() }
    let (certificate, authority) = try device.check(access, identity)
    var vehicle = ImportedVehicle(access.vehicle, signedBy: access.operatorKey, authority: authority)
    vehicle.files += [
      NewFile(RiderPaths.certificate, certificate),
      NewFile(RiderPaths.token, access.tokenText + "\n", isPrivate: true),
    ]
    vehicle.vehicleFile.broker?.tls?.identity = .init(
      certificate: RiderPaths.certificate, key: EnrolledDevice.certificateKeyPath)
    vehicle.vehicleFile.rider = .init(
      // A vehicle file with a control character cannot be read, and an unreadable file blocks every import.
      name: printable(access.token.subject), deviceKey: EnrolledDevice.deviceKeyPath, token: RiderPaths.token)
    vehicle.access = access
    self = vehicle
  }

  /// From a vehicle file and the files that it names, as `provision token` makes them.
  package init(reading path: String) throws {
    var file = try VehicleFile(reading: path)
    // The file may come from anyone, and could name any file that this user can read.
    for name in file.fileNames { try Self.check(name, isWithin: Files.parent(of: path)) }
    var files: [NewFile] = []
    if let authority = file.broker?.tls?.authority {
      files.append(NewFile(RiderPaths.authorityCertificate, try Self.certificate(authority, isAuthority: true)))
      file.broker?.tls?.authority = RiderPaths.authorityCertificate
    }
    if let identity = file.broker?.tls?.identity {
      files.append(NewFile(RiderPaths.certificate, try Self.certificate(identity.certificate)))
      files.append(NewFile(RiderPaths.key, try Self.read(identity.key), isPrivate: true))
      file.broker?.tls?.identity = .init(certificate: RiderPaths.certificate, key: RiderPaths.key)
    }
    operatorKey = file.operatorKey
    if let rider = file.rider {
      try Self.check(rider, of: file.vehicle.uuid, by: operatorKey)
      files.append(NewFile(RiderPaths.deviceKey, try Self.read(rider.deviceKey), isPrivate: true))
      files.append(NewFile(RiderPaths.token, try Self.read(rider.token), isPrivate: true))
      file.rider = .init(name: rider.name, deviceKey: RiderPaths.deviceKey, token: RiderPaths.token)
    }
    file.path = RiderPaths.vehicle
    // Anyone could have written this value.
    file.signed = nil
    vehicleFile = file
    issued = nil
    self.files = files
  }

  /// The differences from the known vehicle, in words for people. Omits the rider, because the token is signed.
  func changes(of known: VehicleFile) -> [String] {
    let new = vehicleFile
    // Riders' own measurements and registrations are not compared.
    func steps(_ file: VehicleFile) -> [Step] {
      file.vehicle.steps.map { Step(id: $0.id, side: $0.side, major: $0.major, minor: $0.minor) }
    }
    let authority = files.first { $0.name == new.broker?.tls?.authority }
    return [
      known.vehicle.name != new.vehicle.name ? "name" : nil,
      steps(known) != steps(new) ? "steps" : nil,
      known.topic != new.topic ? "topic" : nil,
      known.broker?.host != new.broker?.host || known.broker?.port != new.broker?.port ? "broker" : nil,
      (known.broker?.tls?.authority).flatMap { try? Files.read($0) } != authority?.content ? "broker's authority" : nil,
      known.controller != new.controller ? "controller's keys" : nil,
    ].compactMap { $0 }
  }

  /// The changes in the rider's own access, in words for people.
  func accessChanges(of known: VehicleFile) -> [String] {
    let new = vehicleFile
    func isNew(_ name: String?, in place: String?) -> Bool {
      guard let file = files.first(where: { $0.name == name }) else { return false }
      return place.flatMap { try? Files.read($0) } != file.content
    }
    let (identity, before) = (new.broker?.tls?.identity, known.broker?.tls?.identity)
    return [
      new.rider != nil && new.rider?.name != known.rider?.name ? "rider" : nil,
      isNew(new.rider?.token, in: known.rider?.token) ? "token" : nil,
      isNew(new.rider?.deviceKey, in: known.rider?.deviceKey) ? "device key" : nil,
      isNew(identity?.certificate, in: before?.certificate) || isNew(identity?.key, in: before?.key)
        ? "certificate" : nil,
    ].compactMap { $0 }
  }

  /// Checked, because everyone may read the copy: a vehicle file could name any of the user's files as a certificate.
  private static func certificate(_ path: String, isAuthority: Bool = false) throws -> [UInt8] {
    let pem = try read(path)
    try about(path) {
      let certificate = try Certificate(pem: pem)
      _ = try certificate.end()
      if isAuthority { try certificate.requireAuthority() }
    }
    return pem
  }

  private static func read(_ path: String) throws(SystemError) -> [UInt8] {
    try Files.readRegular(path, limit: 1 << 16)
  }

  /// Resolves links before the check.
  private static func check(_ file: String, isWithin folder: String) throws {
    let paths = try [file, folder].map { path in
      guard let resolved = realpath(path, nil) else { throw SystemError("open", path) }
      defer { free(resolved) }
      return String(cString: resolved)
    }
    guard paths[0].hasPrefix(paths[1] + "/") else { throw StoreError.outside(file, folder: folder) }
  }

  /// Without this check, a token of another operator, vehicle or device would fail only at the vehicle.
  private static func check(_ rider: VehicleFile.Rider, of vehicle: UUID, by operatorKey: VerificationKey?) throws {
    let text = try KeyFile.token(rider.token)
    let token = try about(rider.token) {
      let token =
        if let operatorKey { try Token(verifying: text, by: operatorKey) } else { try Token(unverified: text) }
      guard token.vehicle == vehicle else { throw ProtocolError.malformed("the token is for another vehicle") }
      return token
    }
    guard try token.device == KeyFile.verificationKey(rider.deviceKey) else { throw rider.otherDevice }
  }
}
