package import Access
package import Domain
package import Operator
package import StepProtocol

/// What the server needs of the fleet's operator, who has the keys and signs. `FolderIssuer` is the real one.
package protocol AccessIssuer: Sendable {
  /// The keys that count, the present one first.
  func keys() async throws -> [VerificationKey]

  /// Those of them that sign tokens, or did: the present one, and the one before.
  func signers() async throws -> [VerificationKey]

  /// The vehicle whose public part is in the folder of that name; nil if there is none.
  func record(in folder: String) async throws -> VehicleRecord?

  /// Issues the certificate of a vehicle that joins.
  ///
  /// - Throws: `IssuerError`.
  func admit(_ vehicle: Vehicle, _ enrolment: Enrolment, now: Int64) async throws -> Admission

  /// The names of the folders with vehicles' public parts.
  func folders() async throws -> Set<String>

  /// Lets commands by hand know the vehicles.
  ///
  /// - Parameters:
  ///   - new: those that have no folder, by the names that their folders get.
  ///   - former: the folders of removed vehicles with their ids.
  /// - Throws: `IssuerError`.
  func keep(_ new: [String: VehicleRecord], without former: [String: Set<UUID>]) async throws

  /// The vehicles of whose topics the broker has lists.
  var listed: ListedVehicles { get }

  /// Writes the broker's lists, if they can be others than those that it has written before.
  ///
  /// - Throws: `IssuerError`.
  func write(_ lists: BrokerLists) async throws

  /// Signs a token, and makes the access file for it.
  ///
  /// - Throws: `IssuerError`.
  func issue(_ grant: Grant, now: Int64) async throws -> IssuedToken

  /// What was given and revoked by hand in the operator's folder, and what `keep` has put there.
  ///
  /// - Throws: `IssuerError`; also at a time at which nothing may be issued.
  func ledger(now: Int64) async throws -> Ledger

  /// Lets commands by hand, and the broker, know what is revoked.
  ///
  /// - Parameter read: what `ledger` has returned. What came since then stays.
  /// - Throws: `IssuerError`.
  func keep(_ known: Ledger, inPlaceOf read: Ledger, now: Int64) async throws

  /// The number of the last notice that the operator has numbered: one of a key change, or by `stepctl`.
  func lastNumber() async throws -> Int64

  /// Takes the next step of a key change.
  ///
  /// - Parameter number: the greatest number of a notice so far.
  /// - Returns: what was done, as text for people, and the number that later notices must exceed.
  /// - Throws: `IssuerError`.
  func rotateKeys(above number: Int64, next key: [UInt8]?, now: Int64) async throws -> (text: String, number: Int64)

  /// Ends a key change.
  ///
  /// - Parameter tokens: those that count, of all devices that have one by another key than the present one.
  /// - Throws: `IssuerError`.
  func retireKey(tokens: [Ledger.Entry], now: Int64) async throws
}

/// Why the operator does not do what it was asked. A description may name files: it is for the operator.
package enum IssuerError: Error, Equatable, CustomStringConvertible {
  /// The request is damaged, or asks for something that is not allowed. The text names no file.
  case request(String)
  /// The folder cannot be used.
  case failed(String)

  package var description: String {
    switch self {
    case .request(let reason), .failed(let reason): reason
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
  package let vehicle: VehicleRecord
  /// The operator's name for the rider.
  package let subject: String
  package let steps: [StepID]
  /// Unix time, the end exclusive.
  package let validity: Range<Int64>
  package let request: DeviceRequest
}

/// A token that the operator has signed.
package struct IssuedToken: Sendable, Equatable {
  package let entry: Ledger.Entry
  /// The access file for the device.
  package let text: String

  package init(entry: Ledger.Entry, text: String) { (self.entry, self.text) = (entry, text) }
}
