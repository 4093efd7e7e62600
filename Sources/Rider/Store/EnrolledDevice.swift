import Access
import Certificates
package import Domain
import Encoding
package import FileFormats
import Glibc
package import StepProtocol
import SystemIO
package import UserSettings

/// The keys of this user's device, in a folder beside the vehicles. They never leave the device.
package struct EnrolledDevice: Sendable {
  private static let folder = "device"
  private static let deviceKey = "device.jwk"
  private static let certificateKey = "rider.key"

  /// As seen from the folder of a vehicle.
  static let deviceKeyPath = "../../\(folder)/\(deviceKey)"
  static let certificateKeyPath = "../../\(folder)/\(certificateKey)"

  /// The folder of the keys.
  package let path: String

  package init(_ folders: ConfigurationFolders) throws(StoreError) {
    guard let user = folders.user else { throw .noHome }
    path = "\(user)/\(Self.folder)"
  }

  /// Makes the keys that do not exist. Of several programs that do so at once, one makes them, and all use them.
  ///
  /// - Parameter passphrase: protects the device's key; nil if only the file mode protects it. It is called before
  ///   anything is made, and only if the device's key seems to be missing.
  /// - Returns: whether the device's key is new.
  package func prepare(passphrase: () throws -> [UInt8]? = { nil }) throws -> Bool {
    if Files.exists(keyPath), Files.exists(certificateKeyPath) { return false }
    // A person may be asked here, so another program must not have to wait meanwhile.
    let passphrase = Files.exists(keyPath) ? nil : try passphrase()
    return try FolderLock.during(Files.parent(of: path)) {
      Files.exists(path) ? try replaceLost(passphrase) : try makeKeys(passphrase)
    }
  }

  private func makeKeys(_ passphrase: [UInt8]?) throws -> Bool {
    let deviceKey = try Self.content(of: SigningKey(), passphrase)
    let certificateKey = try about(path) { try PrivateKey().pem() }
    // Left by an interrupted run, and useless.
    let new = "\(Files.parent(of: path))/.\(Self.folder).new"
    try StagingFolder.remove(new)
    let staging = try StagingFolder(new)
    try staging.write(NewFile(Self.deviceKey, deviceKey, isPrivate: true))
    try staging.write(NewFile(Self.certificateKey, certificateKey, isPrivate: true))
    try staging.synchronize()
    try staging.become(path)
    return true
  }

  /// Makes a lost key anew. Otherwise a device that has lost one could never enroll again. A run that is cut off leaves
  /// no half of a key, which would have the same effect.
  private func replaceLost(_ passphrase: [UInt8]?) throws -> Bool {
    if !Files.exists(certificateKeyPath) {
      let pem = try about(certificateKeyPath) { try PrivateKey().pem() }
      try Files.replace(certificateKeyPath, with: pem, mode: 0o600)
    }
    guard !Files.exists(keyPath) else { return false }
    try Files.replace(keyPath, with: Self.content(of: SigningKey(), passphrase), mode: 0o600)
    return true
  }

  private static func content(of key: SigningKey, _ passphrase: [UInt8]?) throws -> [UInt8] {
    try passphrase.map { try ProtectedKey.seal(key, by: $0) } ?? Array("\(key.jwk.text)\n".utf8)
  }

  /// Protects the device's key by another passphrase, or only by its file mode. The key stays the same.
  package func protect(by passphrase: [UInt8]?, unlock: KeyFile.Unlock?) throws {
    try FolderLock.during(Files.parent(of: path)) {
      let key = try signingKey(unlock: unlock)
      try Files.rewrite(keyPath, with: Self.content(of: key, passphrase))
    }
  }

  /// The request to an operator. It is valid for any vehicle, any number of times.
  ///
  /// - Parameters:
  ///   - name: the rider's preferred name.
  ///   - now: Unix time.
  ///   - identity: this device's, if it is already known.
  ///   - unlock: opens the device's key if a passphrase protects it.
  package func request(
    name: RiderName, now: Int64, identity: Identity? = nil, unlock: KeyFile.Unlock? = nil
  ) throws -> (text: String, device: Thumbprint) {
    let device = try signingKey(unlock: unlock)
    let request = try identity ?? self.identity()
    return (
      DeviceRequest.signed(
        name: name.description, certificateRequest: request.certificateRequest, issued: now, by: device),
      device.verificationKey.thumbprint
    )
  }

  /// The public part of the key for certificates. libcrypto needs some milliseconds for it.
  package struct Identity: Sendable {
    fileprivate let certificateRequest: [UInt8]
    fileprivate let publicKey: [UInt8]
  }

  package func identity() throws -> Identity {
    let key = try privateKey()
    return try about(certificateKeyPath) {
      let request = try CertificateRequest(for: key)
      return Identity(certificateRequest: try request.der(), publicKey: try request.publicKey())
    }
  }

  /// The device's key itself.
  package func signingKey(unlock: KeyFile.Unlock? = nil) throws -> SigningKey {
    try KeyFile.signingKey(keyPath, unlock: unlock)
  }

  /// Needs no passphrase.
  package func verificationKey() throws -> VerificationKey { try KeyFile.verificationKey(keyPath) }

  /// Whether the device had a key, and has it no longer.
  package var hasLostKey: Bool { Files.exists(path) && !Files.exists(keyPath) }

  var keyPath: String { "\(path)/\(Self.deviceKey)" }

  private var certificateKeyPath: String { "\(path)/\(Self.certificateKey)" }

  private func privateKey() throws -> PrivateKey {
    let keyPath = certificateKeyPath
    try KeyFile.checkPrivate(keyPath)
    let pem = try Files.readRegular(keyPath)
    return try about(keyPath) { try PrivateKey(pem: pem) }
  }

  /// Throws if an access file is not for this device.
  ///
  /// - Returns: its certificate and the authority's, PEM.
  func check(_ access: AccessFile, _ identity: Identity?) throws -> (certificate: [UInt8], authority: [UInt8]) {
    guard Files.exists(path) else { throw StoreError.notEnrolled }
    try KeyFile.checkPrivate(keyPath)
    let own = try verificationKey()
    guard access.token.device == own else {
      throw StoreError.otherDevice(asked: access.token.device.thumbprint, own: own.thumbprint)
    }
    return try about("the access file's certificate") {
      let certificate = try Certificate(der: access.certificate)
      if try certificate.publicKey() != identity?.publicKey { try certificate.require(isFor: privateKey()) }
      let authority = try Certificate(der: access.vehicle.authority)
      try authority.requireAuthority()
      try certificate.require(isFrom: authority)
      return (try certificate.pem(), try authority.pem())
    }
  }
}
