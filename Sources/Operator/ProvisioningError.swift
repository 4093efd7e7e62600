import Configuration
package import Domain
import Glibc
package import StepProtocol

/// Why nothing was provisioned or imported.
package enum ProvisioningError: Failure, Equatable {
  /// A part of a vehicle exists already at that path; nothing was changed.
  case inTheWay(String)
  /// The rider of that folder has been provisioned; nothing was changed.
  case riderExists(String)
  /// An earlier run ended in the middle, or another is at work; what it left is at that path.
  case unfinished(String)
  /// What the vehicle is to be called is no name for one.
  case unusableName
  /// The folder's absolute path cannot be written into mosquitto.conf.
  case unusablePath
  /// A token was asked for no step at all.
  case noSteps
  /// A token or a tag is for a step that the vehicle does not have; it has those.
  case noSuchStep(StepID, known: [StepID])
  /// A token that would never be valid, or whose times no calendar has.
  case unusableLifetime
  /// The token would be valid for longer than any certificate can be: the authority's own ends then (Unix time).
  case outlivesAuthority(end: Int64)
  /// The file at that path has as many tags as it may.
  case tooManyTags(String)
  /// The file at that path has the tag as another step's.
  case tagOfAnotherStep(TagUID, StepID, String)
  /// The rider's folder holds the private key at that path, which is not the one that a token was asked for.
  case otherDevice(String)
  /// There is no folder for what a user configures.
  case noHome
  /// Another operator than the one whose key the vehicle file at that path pins, or none. To forget that one, what is
  /// at `place` has to go.
  case otherOperator(String, place: String, found: Thumbprint?)
  /// Something else is said of the vehicle of that file, and its operator, whose key is pinned, has not signed it.
  case notSigned(String, [String])
  /// Something else is said of the vehicle of that file than its operator said later.
  case outdated(String, [String])
  /// Another vehicle has the name; its file is at that path.
  case nameTaken(String, String)
  /// The vehicle is there under that name, in the file at that path.
  case knownAs(String, String)
  /// A name that is no folder's.
  case unusableVehicleName(String)
  /// The vehicle's file has no folder of its own.
  case looseFile(String)
  case openSSL(String, OpenSSLError)
  case token(String, ProtocolError)

  package var description: String {
    switch self {
    case .inTheWay(let path): "\(path) exists already; use --force to replace it"
    case .riderExists(let path): "\(path) exists already; use --force to renew its token"
    case .unfinished(let path):
      "\(path) is there: provisioning the vehicle was interrupted, or is going on; to begin anew, use --force for it"
    case .unusableName: "a vehicle's name is \(Vehicle.nameRule)"
    case .unusablePath:
      "mosquitto cannot read from a folder whose path is not UTF-8 or has control characters; use another folder"
    case .noSteps: "a token is for at least one step"
    case .noSuchStep(let step, let known):
      "the vehicle has no step \(step): it has \(known.map(\.description).joined(separator: ", "))"
    case .unusableLifetime: "a token is valid for at least one second, and ends before the year 10000"
    case .outlivesAuthority(let end):
      "the token would outlive the vehicle's certificate authority, which ends on \(Self.date(end));"
        + " use a shorter time, or provision the vehicle anew"
    case .tooManyTags(let path): "\(path) has room for \(TagKeyFile.maximumCount) tags; remove one that is not used"
    case .tagOfAnotherStep(let tag, let step, let path):
      "\(path) has the tag \(tag) as one of the \(step) step's; use another tag"
    case .otherDevice(let path):
      "\(path) is the key of another device; remove the rider's folder to begin anew"
    case .noHome: "there is no folder to put the vehicle into: HOME is not set"
    case .otherOperator(let path, let place, let found):
      "not of the operator that \(path) trusts, but of \(found?.grouped ?? "nobody that is named");"
        + " if you are sure of it, remove \(place) and import again"
    case .notSigned(let path, let changes):
      "not signed, and otherwise than \(path): \(changes.joined(separator: ", ")); import the vehicle's code, which is"
    case .outdated(let path, let changes):
      "an old code: \(path) has a later one's \(changes.joined(separator: ", ")); ask the operator for the present one"
    case .nameTaken(let name, let path): "\(path) is another vehicle of the name \(name): use --name for another name"
    case .knownAs(let name, let path): "this vehicle is known as \(name) already: \(path)"
    case .unusableVehicleName(let name):
      "\(name): a name is 1 to 64 letters, digits, \".\", \"-\" and \"_\", the first not a \".\", the end not \".toml\""
    case .looseFile(let path):
      "\(path) is this vehicle's file; move it to \(path.dropLast(5))/vehicle.toml, and import again"
    case .openSSL(let path, let error): "\(path): \(error)"
    case .token(let path, let error): "\(path): \(error)"
    }
  }

  package var exitStatus: ExitStatus {
    switch self {
    case .unusableName, .unusablePath, .noSuchStep, .unusableLifetime, .outlivesAuthority, .unusableVehicleName,
      .nameTaken, .knownAs:
      .usage
    case .openSSL, .token, .otherOperator, .notSigned, .outdated: .badData
    case .noHome, .tagOfAnotherStep, .tooManyTags: .configuration
    case .inTheWay, .riderExists, .unfinished, .noSteps, .otherDevice, .looseFile: .failure
    }
  }

  /// The day of a Unix time in UTC: `2036-11-18`.
  private static func date(_ time: Int64) -> String {
    var time = time_t(time)
    var text = [CChar](repeating: 0, count: 16)
    let count = strftime(&text, text.count, "%Y-%m-%d", gmtime(&time))
    return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

/// Says which file an error of libcrypto, or of a token, is about.
func about<Result: ~Copyable>(_ path: String, _ body: () throws -> Result) throws -> Result {
  do { return try body() } catch {
    switch error {
    case let error as OpenSSLError: throw ProvisioningError.openSSL(path, error)
    case let error as ProtocolError: throw ProvisioningError.token(path, error)
    default: throw error
    }
  }
}
