package import Domain
import Encoding
import Glibc
import StepProtocol
import StepdConfiguration

/// Why nothing was provisioned.
package enum ProvisioningError: Failure, Equatable {
  /// A vehicle is in that folder; nothing was changed.
  case vehicleExists(String)
  /// At that path is something with the name of a vehicle's part; nothing was changed.
  case inTheWay(String)
  /// Only some of the keys that belong together exist; this is one of them.
  case incompleteKeys(String)
  /// The folder that was given for a vehicle belongs to an operator who has others; nothing was changed.
  case operatorExists(String)
  /// The folder is an operator's and no vehicle's, but one vehicle is needed; these are the operator's.
  case severalVehicles(String, [String])
  /// The rider of that folder has already been provisioned; nothing was changed.
  case riderExists(String)
  /// There is already a watcher of that name.
  case watcherExists(String)
  /// An earlier run was interrupted, or another is still running; its files are at that path.
  case unfinished(String)
  /// The text cannot be a vehicle's name.
  case unusableName
  /// The folder's name cannot be the name of the vehicle's record at its operator.
  case unusableFolderName(String)
  /// The vehicle's folder would be among the records of an operator, in this folder.
  case amongRecords(String, of: String)
  /// The folder's absolute path cannot be written into mosquitto.conf.
  case unusablePath
  /// A token was requested without any step.
  case noSteps
  /// A token or a tag is for a step that the vehicle does not have; `known` are its steps.
  case noSuchStep(StepID, known: [StepID])
  /// A token that would never be valid, or whose end is beyond the calendar.
  case unusableLifetime
  /// The token would begin before the authority's own certificate, which begins then (Unix time).
  case beforeAuthority(begin: Int64)
  /// The token would be valid longer than any certificate, because the authority's own certificate ends then (Unix
  /// time).
  case outlivesAuthority(end: Int64)
  /// The file at that path is full.
  case tooManyTags(String)
  /// The file at that path lists the tag for another step.
  case tagOfAnotherStep(TagUID, StepID, String)
  /// The rider's folder contains the private key at that path, but the token was requested for another key.
  case otherDevice(String)

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
    case .unusableFolderName(let name):
      "a folder named \"\(printable(name))\" cannot be a vehicle's: its operator keeps the vehicle under the same name"
    case .amongRecords(let folder, let place):
      "\(folder) is among the vehicles' public files that the operator in \(place) keeps"
    case .unusablePath:
      "mosquitto cannot read from a folder whose path is not UTF-8 or has control characters; use another folder"
    case .noSteps: "a token needs at least one step"
    case .noSuchStep(let step, let known):
      "the vehicle has no step \(step): it has \(known.map(\.description).joined(separator: ", "))"
    case .unusableLifetime: "a token is valid for at least one second, and ends before the year 10000"
    case .beforeAuthority(let begin):
      "the token would begin before the vehicle's certificate authority, which begins on \(Self.date(begin));"
        + " use a later time"
    case .outlivesAuthority(let end):
      "the token would outlive the vehicle's certificate authority, which ends on \(Self.date(end));"
        + " use a shorter time, or provision the vehicle again"
    case .tooManyTags(let path): "\(path) is full: it has \(TagKeyFile.maximumCount) tags; remove one that is not used"
    case .tagOfAnotherStep(let tag, let step, let path):
      "\(path) lists the tag \(tag) for the \(step) step; use another tag"
    case .otherDevice(let path):
      "\(path) is the key of another device; remove the rider's folder to start again"
    }
  }

  package var hint: String? {
    switch self {
    case .vehicleExists: "`provision renew` and `update` keep it; --force replaces it, and its riders need new tokens"
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
    case .unusableFolderName(let name):
      "use a folder of letters, digits, \".\", \"-\" and \"_\", and --name for the name: "
        + shellCommand("stepctl", "provision", "vehicle", Self.folder(for: name), "--name", name)
    case .amongRecords: "choose a folder outside; it is made for the vehicle itself"
    case .unusableName, .unusablePath, .noSteps, .noSuchStep, .unusableLifetime, .beforeAuthority,
      .outlivesAuthority, .tooManyTags, .tagOfAnotherStep, .otherDevice:
      nil
    }
  }

  package var exitStatus: ExitStatus {
    switch self {
    case .unusableName, .unusableFolderName, .amongRecords, .unusablePath, .noSuchStep, .unusableLifetime,
      .beforeAuthority, .outlivesAuthority:
      .usage
    case .tagOfAnotherStep, .tooManyTags: .configuration
    case .severalVehicles: .noInput
    case .vehicleExists, .inTheWay, .incompleteKeys, .operatorExists, .riderExists, .watcherExists, .unfinished,
      .noSteps, .otherDevice:
      .failure
    }
  }

  private static func folder(for name: String) -> String {
    let typable = Vehicle.typable(name)
    return typable.isEmpty ? "vehicle" : typable
  }

  /// The day of a Unix time in UTC: `2036-11-18`.
  private static func date(_ time: Int64) -> String {
    var time = time_t(time)
    var text = [CChar](repeating: 0, count: 16)
    let count = strftime(&text, text.count, "%Y-%m-%d", gmtime(&time))
    return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
