import Configuration
package import Domain
import Glibc
package import StepProtocol

/// Why nothing was provisioned or imported.
package enum ProvisioningError: Failure, Equatable {
  /// A vehicle is in that folder; nothing was changed.
  case vehicleExists(String)
  /// At that path is something with the name of a vehicle's part; nothing was changed.
  case inTheWay(String)
  /// Only some of the keys that belong together exist; this is one of them.
  case incompleteKeys(String)
  /// The folder that was given for one vehicle belongs to an operator of several; nothing was changed.
  case operatorExists(String)
  /// The folder belongs to an operator of several vehicles, but one vehicle is needed; these are the vehicles' folders.
  case severalVehicles(String, [String])
  /// The rider of that folder has already been provisioned; nothing was changed.
  case riderExists(String)
  /// There is already a watcher of that name.
  case watcherExists(String)
  /// An earlier run was interrupted, or another is still running; its files are at that path.
  case unfinished(String)
  /// The text cannot be a vehicle's name.
  case unusableName
  /// The folder's absolute path cannot be written into mosquitto.conf.
  case unusablePath
  /// A token was requested without any step.
  case noSteps
  /// A token or a tag is for a step that the vehicle does not have; `known` are its steps.
  case noSuchStep(StepID, known: [StepID])
  /// A token that would never be valid, or whose end is beyond the calendar.
  case unusableLifetime
  /// The token would be valid longer than any certificate, because the authority's own certificate ends then (Unix
  /// time).
  case outlivesAuthority(end: Int64)
  /// The file at that path is full.
  case tooManyTags(String)
  /// The file at that path lists the tag for another step.
  case tagOfAnotherStep(TagUID, StepID, String)
  /// The rider's folder contains the private key at that path, but the token was requested for another key.
  case otherDevice(String)
  /// There is no folder for the user's configuration.
  case noHome
  /// The vehicle file at that path pins another operator's key than `found`. To forget that operator, the user removes
  /// `place`.
  case otherOperator(String, place: String, found: Thumbprint?)
  /// The vehicle in that file would change, but its operator, whose key is pinned, has not signed the change.
  case notSigned(String, [String])
  /// The vehicle in that file would become older: its operator has signed something newer.
  case outdated(String, [String])
  /// Another vehicle has the name; its file is at that path.
  case nameTaken(String, String)
  /// The user already has the vehicle under that name, from the file at that path.
  case knownAs(String, String)
  /// A name that no folder can have.
  case unusableVehicleName(String)
  /// The vehicle's file has no folder of its own.
  case looseFile(String)
  /// A vehicle file to be imported names a file outside its folder.
  case outside(String, folder: String)
  case openSSL(String, OpenSSLError)
  case token(String, ProtocolError)

  package var description: String {
    switch self {
    case .vehicleExists(let folder): "there is a vehicle in \(folder)"
    case .inTheWay(let path), .riderExists(let path), .watcherExists(let path): "\(path) already exists"
    case .incompleteKeys(let path): "\(path) already exists without the keys that belong to it"
    case .operatorExists(let folder), .severalVehicles(let folder, _):
      "\(folder) is an operator of several vehicles"
    case .unfinished(let path):
      "\(path) exists: provisioning the vehicle was interrupted, or is still running"
    case .unusableName: "a vehicle's name is \(Vehicle.nameRule)"
    case .unusablePath:
      "mosquitto cannot read from a folder whose path is not UTF-8 or has control characters; use another folder"
    case .noSteps: "a token needs at least one step"
    case .noSuchStep(let step, let known):
      "the vehicle has no step \(step): it has \(known.map(\.description).joined(separator: ", "))"
    case .unusableLifetime: "a token is valid for at least one second, and ends before the year 10000"
    case .outlivesAuthority(let end):
      "the token would outlive the vehicle's certificate authority, which ends on \(Self.date(end));"
        + " use a shorter time, or provision the vehicle again"
    case .tooManyTags(let path): "\(path) is full: it has \(TagKeyFile.maximumCount) tags; remove one that is not used"
    case .tagOfAnotherStep(let tag, let step, let path):
      "\(path) lists the tag \(tag) for the \(step) step; use another tag"
    case .otherDevice(let path):
      "\(path) is the key of another device; remove the rider's folder to start again"
    case .noHome: "no folder for stepctl's files: HOME is not set"
    case .otherOperator(let path, let place, let found):
      "\(path) trusts another operator than \(found?.grouped ?? "this one, who is not named");"
        + " if you are sure of this one, remove \(place) and import again"
    case .notSigned(let path, let changes):
      "not signed, and different from \(path): \(changes.joined(separator: ", "));"
        + " import the vehicle's code, which is signed"
    case .outdated(let path, let changes):
      "an old code: \(path) has a newer \(changes.joined(separator: ", ")); ask the operator for the current code"
    case .nameTaken(let name, let path): "\(path) is another vehicle named \(name); use --name to choose another name"
    case .knownAs(let name, let path): "this vehicle is already known as \(name): \(path)"
    case .unusableVehicleName(let name):
      "--name \"\(name)\": a name has 1 to 64 letters, digits, \".\", \"-\" and \"_\"; it starts with no \".\" and ends with no \".toml\""
    case .looseFile(let path):
      "\(path) is this vehicle's file; move it to \(path.dropLast(5))/vehicle.toml, and import again"
    case .outside(let path, let folder):
      "\(path) is not in \(folder), where the vehicle file is; put the files that belong together into one folder"
    case .openSSL(let path, let error): "\(path): \(error)"
    case .token(let path, let error): "\(path): \(error)"
    }
  }

  package var hint: String? {
    switch self {
    case .vehicleExists: "--renew and --update keep it; --force replaces it, and its riders need new tokens"
    case .inTheWay: "--force replaces it, and keeps the old one in replaced-TIME"
    case .incompleteKeys: "put the others back, or remove it to make new keys"
    case .operatorExists: "choose another folder; nothing was changed"
    case .severalVehicles(let folder, let vehicles):
      vehicles.isEmpty
        ? "`\(shellCommand("stepctl", "provision", "vehicle", "NAME", "--operator", folder))` makes its first one"
        : "name one of its vehicles: \(vehicles.prefix(4).map(shellWord).joined(separator: ", "))"
          + (vehicles.count > 4 ? ", …" : "")
    case .riderExists: "--force renews its token"
    case .watcherExists: "choose another name, or remove that folder"
    case .unfinished: "`stepctl provision vehicle --force` starts again"
    case .noHome: "set HOME, or XDG_CONFIG_HOME"
    case .unusableName, .unusablePath, .noSteps, .noSuchStep, .unusableLifetime, .outlivesAuthority, .tooManyTags,
      .tagOfAnotherStep, .otherDevice, .otherOperator, .notSigned, .outdated, .nameTaken, .knownAs,
      .unusableVehicleName, .looseFile, .outside, .openSSL, .token:
      nil
    }
  }

  package var exitStatus: ExitStatus {
    switch self {
    case .unusableName, .unusablePath, .noSuchStep, .unusableLifetime, .outlivesAuthority, .unusableVehicleName,
      .nameTaken, .knownAs:
      .usage
    case .openSSL, .token, .otherOperator, .notSigned, .outdated, .outside: .badData
    case .noHome, .tagOfAnotherStep, .tooManyTags: .configuration
    case .severalVehicles: .noInput
    case .vehicleExists, .inTheWay, .incompleteKeys, .operatorExists, .riderExists, .watcherExists, .unfinished,
      .noSteps, .otherDevice, .looseFile:
      .failure
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

/// Adds the path of the file to an error of libcrypto or of a token.
func about<Result: ~Copyable>(_ path: String, _ body: () throws -> Result) throws -> Result {
  do { return try body() } catch {
    switch error {
    case let error as OpenSSLError: throw ProvisioningError.openSSL(path, error)
    case let error as ProtocolError: throw ProvisioningError.token(path, error)
    default: throw error
    }
  }
}
