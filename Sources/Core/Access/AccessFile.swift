import Domain
import Encoding
public import StepProtocol

/// The operator's answer to a device's request, as one text: the vehicle's code, a token, and a certificate for the
/// broker. It contains no secret: the token is useless without the device's private key.
///
/// The text as a whole does not need a signature. The operator has signed the code and the token; the authority in the
/// code has signed the certificate. (PROTOCOL.md, section 9.2)
public struct AccessFile: Sendable, Equatable {
  /// In bytes.
  public static let maximumSize = 16_384

  /// The vehicle and its broker, as the operator signed them.
  public let vehicle: VehicleCode
  /// The key that signed the code and the token.
  public let operatorKey: VerificationKey
  /// What the rider may do, and until when.
  public let token: Token
  /// The token's compact form.
  public let tokenText: String
  /// DER (X.509). Only its size is checked here.
  public let certificate: [UInt8]
  /// The access file as it was read.
  public let text: String
  /// A notice that lists the operator's present key and is signed by an earlier one, for riders who know only that
  /// earlier key.
  private let notice: String?

  /// - Parameters:
  ///   - vehicle: the vehicle's code, signed by the operator.
  ///   - token: signed by the same key.
  ///   - certificate: DER.
  ///   - notice: signed by the operator's previous key, if there was one.
  public init(vehicle: String, token: String, certificate: [UInt8], notice: String? = nil) throws(ProtocolError) {
    var members: [JSON.Member] = [
      .init("vehicle", .string(vehicle)), .init("token", .string(token)),
      .init("certificate", .string(Base64URL.encode(certificate))),
    ]
    if let notice { members.append(.init("notice", .string(notice))) }
    try self.init(parsing: JSON.object(members).text, now: nil)
  }

  /// Reads an access file. Checks that one key signed both the code and the token, and that both are for one vehicle.
  /// The caller must check that this key is the operator's, and that the token is valid now.
  ///
  /// - Parameter now: seconds of Unix time; nil if the time is unknown.
  public init(parsing text: String, now: Int64?) throws(ProtocolError) {
    guard text.utf8.count <= Self.maximumSize else { throw .malformed("larger than \(Self.maximumSize) bytes") }
    var members = try ObjectReader(parse(text.utf8, "the access file"), of: "the access file")
    (vehicle, operatorKey) = try VehicleCode.verify(members.string("vehicle"), now: now)
    tokenText = try members.string("token")
    token = try Token(verifying: tokenText, by: operatorKey)
    certificate = try members.take("certificate", "base64url of a certificate") { value in
      value.string.flatMap { Base64URL.decode($0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
    notice = try members.takeIfPresent("notice", "a string") { $0.string }
    try members.end()
    guard token.vehicle == vehicle.vehicle.uuid else { throw .malformed("the token is for another vehicle") }
    self.text = text
  }

  /// Throws unless the notice, if there is one, is for this vehicle, lists the operator's key, and is signed by one of
  /// the keys that it lists. A rider who knows none of them has no other way to judge it.
  public func checkNotice() throws(ProtocolError) {
    guard let notice else { return }
    let object = try SignedObject(parsing: notice, as: .notice)
    let read = try Notice(claims: object.payload)
    guard read.vehicle == vehicle.vehicle.uuid else { throw .malformed("it is for another vehicle") }
    guard read.keys.contains(operatorKey) else { throw .malformed("it does not list the operator's key") }
    try object.verify(by: read.keys)
  }

  /// Whether `known`, a key of the operator, vouches for `operatorKey`.
  public func isVouched(by known: VerificationKey) -> Bool {
    if known == operatorKey { return true }
    guard let notice, let read = try? Notice.read(Array(notice.utf8), verifiedBy: [known]) else { return false }
    return read.vehicle == vehicle.vehicle.uuid && read.keys.contains(operatorKey)
  }
}
