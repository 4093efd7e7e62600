import Access
import Certificates
package import Domain
import Encoding
import FileFormats
import Glibc
import MQTT
package import StepProtocol
import SystemIO

/// Why an operator's folder was left unchanged, or why a vehicle was not told.
package enum LedgerError: Failure, Equatable {
  case damaged(String)
  /// Every operator's folder has that file.
  case missing(String)
  /// No valid subject has that name.
  case nothingToRevoke(String)
  case noticeTooLarge(Int)
  /// Every token for the device is refused until the device's last token has ended.
  case deviceRevoked(Thumbprint)
  /// A new key was requested, but the previous one is still valid.
  case stillChanging(String)
  case nothingToRetire(String)
  /// A next key was given that is the present one, or after the next one was announced.
  case nextKeyIsKnown(String)
  /// The riders whose tokens the key has signed.
  case tokensLast([String])
  /// The vehicles that have not confirmed a notice with the present key.
  case notTold([String], String)
  /// The vehicles that have not confirmed a notice with the next key.
  case notAnnounced([String], String)
  /// The broker accepted the notice, but does not keep it.
  case notKept(String)
  case noAnswer(String)
  /// The folder has no keys for signing.
  case noOperator(String)
  /// A vehicle of that folder has the same name, UUID or topic.
  case taken(String)
  /// Another run is creating this operator, or was interrupted.
  case interrupted(String)
  /// Something is already at the place of the new operator.
  case inTheWay(String)

  package var exitStatus: ExitStatus {
    switch self {
    case .damaged: .badData
    case .nothingToRevoke, .noticeTooLarge, .deviceRevoked, .stillChanging, .nothingToRetire, .nextKeyIsKnown,
      .tokensLast, .notTold, .notAnnounced:
      .failure
    case .notKept, .noAnswer: .unavailable
    case .noOperator, .missing: .noInput
    case .taken: .usage
    case .inTheWay, .interrupted: .failure
    }
  }

  package var description: String {
    switch self {
    case .damaged(let path): "\(path) is damaged: nothing was changed"
    case .missing(let path): "\(path) is missing: nothing was changed"
    case .nothingToRevoke: "no unexpired token matches"
    case .noticeTooLarge(let count): "\(count) revocations do not fit into one notice"
    case .deviceRevoked(let device): "the device \(device.grouped) is revoked"
    case .stillChanging: "the key before the present one still counts"
    case .nothingToRetire: "there is no old key to retire"
    case .nextKeyIsKnown: "the next key is known: it was announced already, or it is the present key"
    case .tokensLast(let riders): "riders would be locked out: \(riders.joined(separator: ", "))"
    case .notTold(let vehicles, _):
      "not known to have the present key: \(printable(vehicles.joined(separator: ", ")))"
    case .notAnnounced(let vehicles, _):
      "not known to have the next key: \(printable(vehicles.joined(separator: ", ")))"
    case .notKept(let broker): "\(broker) does not keep the notice: its access list does not let the operator write"
    case .noAnswer(let broker): "\(broker) has not confirmed the notice"
    case .noOperator(let path): "\(path) is not an operator's folder: \(path)/\(VehiclePaths.tokenKey) is missing"
    case .taken(let path): "\(path) is a vehicle of this operator with the same name, UUID or topic"
    case .inTheWay(let path): "\(path) already exists"
    case .interrupted(let path): "\(path) exists: making the operator was interrupted, or is still running"
    }
  }

  package var hint: String? {
    switch self {
    case .damaged, .missing: "take the file from a backup"
    case .nothingToRevoke(let folder): "`\(Self.command("tokens", folder))` lists them"
    case .noticeTooLarge: "revoke devices instead of tokens, or change the key: `stepctl operator keys rotate`"
    case .deviceRevoked: "the rider can ask with new keys: remove ~/.config/stepctl/device there, and enroll again"
    case .stillChanging(let folder): "`\(Self.command("keys", "retire", folder))` ends that change first"
    case .nextKeyIsKnown(let folder): "`\(Self.command("keys", "rotate", folder))` goes on without a key"
    case .nothingToRetire(let folder): "`\(Self.command("keys", "rotate", folder))` begins a change"
    case .tokensLast: "give them new tokens, wait until the old ones have ended, or use --force"
    case .notTold(_, let folder):
      "`\(Self.command("log", folder))` asks these vehicles; one that knows only the old key obeys nobody after that key is retired"
    case .notAnnounced(_, let folder):
      "`\(Self.command("log", folder))` asks them; a vehicle without that key would refuse new tokens; --force goes on"
    case .notKept: "run `stepctl provision update DIR`, which writes the access list, then restart the broker"
    case .noAnswer: "`stepctl operator publish` tries again"
    case .noOperator:
      "give the folder with operator/, on the operator's computer: a vehicle's, or that of `stepctl operator init`"
    case .taken: "give the new vehicle another folder, name, UUID and topic; --force replaces one of the same folder"
    case .inTheWay: "choose another folder; nothing was changed"
    case .interrupted(let path):
      "if no other `stepctl operator init` is running, remove it: \(shellCommand("rm", "-r", path))"
    }
  }

  private static func command(_ words: String...) -> String {
    (["stepctl", "operator"] + words).map(shellWord).joined(separator: " ")
  }
}
