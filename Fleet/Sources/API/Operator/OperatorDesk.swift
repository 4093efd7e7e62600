package import Access
package import Domain
package import StepProtocol

/// What the server needs of the fleet's operator, who has the keys and signs. `FolderDesk` is the real one.
package protocol OperatorDesk: Sendable {
  /// The keys that count, the present one first.
  func keys() async throws -> [VerificationKey]

  /// The vehicle whose public part is in the folder of that name; nil if there is none.
  func vehicle(in folder: String) async throws -> Vehicle?

  /// Admits a vehicle that joins. Its folder gets the vehicle's UUID as its name.
  ///
  /// - Throws: `DeskError`.
  func admit(_ vehicle: Vehicle, _ enrolment: Enrolment, now: Int64) async throws -> Admission

  /// Removes a vehicle's folder, after its last notice was published. If the notice cannot be published, the folder
  /// stays.
  ///
  /// - Parameter vehicle: nil if there is no notice to publish.
  func remove(_ folder: String, telling vehicle: UUID?) async throws

  /// Signs a token, and makes the access file for it.
  ///
  /// - Throws: `DeskError`.
  func issue(_ grant: Grant, now: Int64) async throws -> IssuedToken

  /// Revokes the subjects. The revocation is recorded when this returns, and published as soon as the broker accepts
  /// it.
  ///
  /// - Returns: the number of revoked tokens that have not ended.
  func revoke(_ subjects: [Notice.Subject], of vehicles: Set<UUID>, now: Int64) async throws -> Int

  /// Gives new notices to the broker, in the background.
  func publish(to vehicles: Set<UUID>)

  /// Takes the next step of a key change.
  ///
  /// - Returns: what was done, as text for people.
  /// - Throws: `DeskError`.
  func rotateKeys(now: Int64) async throws -> String

  /// Ends a key change.
  ///
  /// - Throws: `DeskError`.
  func retireKey(now: Int64) async throws

  /// Forgets what ended long ago.
  func tidy(now: Int64) async throws
}

/// Why the operator does not do what it was asked. A description may name files: it is for the operator.
package enum DeskError: Error, Equatable, CustomStringConvertible {
  /// The request is damaged, or asks for something that is not allowed. The text names no file.
  case request(String)
  /// With one more token, one notice could not revoke all of them. More can be had from this time on, Unix time.
  case tooMany(until: Int64)
  /// The operator has taken back the device's access.
  case deviceRevoked
  /// The id or the topic is another vehicle's.
  case taken(String)
  /// The folder cannot be used.
  case failed(String)

  package var description: String {
    switch self {
    case .request(let reason), .taken(let reason), .failed(let reason): reason
    case .tooMany: "too many tokens for the vehicle or the device have not ended"
    case .deviceRevoked: "the device is revoked"
    }
  }
}

/// What the operator could not do. What others are told of it names no file.
enum OperatorFailure: Error, Equatable {
  /// Admit a vehicle, or give access: it can be asked again.
  case admission, access
  /// Change its key. The operator may read why.
  case keys(String)
}

/// The request of a vehicle that joins. The vehicle has made its private keys, and keeps them.
package struct Enrolment: Sendable {
  package let code: String
  /// The name that the vehicle asks for; nil for whichever it gets.
  package let name: String?
  package let id: UUID
  package let topic: TopicPrefix
  package let steps: [Step]
  package let encryptionKey: EncryptionKey
  package let statementKey: VerificationKey
  /// PKCS #10, DER, for the name `controller`.
  package let certificateRequest: [UInt8]

  package init(
    code: String, name: String?, id: UUID, topic: TopicPrefix, steps: [Step], encryptionKey: EncryptionKey,
    statementKey: VerificationKey, certificateRequest: [UInt8]
  ) {
    (self.code, self.name, self.id, self.topic, self.steps) = (code, name, id, topic, steps)
    (self.encryptionKey, self.statementKey) = (encryptionKey, statementKey)
    self.certificateRequest = certificateRequest
  }
}

/// The answer to a vehicle that joins.
package struct Admission: Sendable, Equatable {
  package let keys: [VerificationKey]
  /// Where the broker is.
  package let host: String
  package let port: UInt16
  /// PEM.
  package let authority: String
  /// PEM.
  package let certificate: String
  /// When the certificate ends, Unix time.
  package let end: Int64

  package init(
    keys: [VerificationKey], host: String, port: UInt16, authority: String, certificate: String, end: Int64
  ) {
    (self.keys, self.host, self.port) = (keys, host, port)
    (self.authority, self.certificate, self.end) = (authority, certificate, end)
  }
}

/// Access that a device is to have.
package struct Grant: Sendable, Equatable {
  /// The name of the vehicle's folder.
  package let folder: String
  /// The operator's name for the rider.
  package let subject: String
  package let steps: [StepID]
  /// Unix time, the end exclusive.
  package let validity: Range<Int64>
  package let request: DeviceRequest
}

/// A token that the operator has signed.
package struct IssuedToken: Sendable, Equatable {
  /// Its id.
  package let jti: String
  /// Unix time.
  package let expires: Int64
  /// The access file for the device.
  package let text: String

  package init(jti: String, expires: Int64, text: String) {
    (self.jti, self.expires, self.text) = (jti, expires, text)
  }
}
