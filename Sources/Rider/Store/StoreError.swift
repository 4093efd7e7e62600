import Access
package import Domain
package import StepProtocol

/// Why this device takes or keeps no keys, no vehicle or no access.
package enum StoreError: Failure, Equatable {
  /// There is no folder for the user's configuration.
  case noHome
  /// This device has no key yet.
  case notEnrolled
  /// The private key at that path is not there.
  case lostKey(String)
  /// The access file is for another device.
  case otherDevice(asked: Thumbprint, own: Thumbprint)
  /// The new access file was made before the installed one.
  case older(String)
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
  /// The vehicle in that file is for all users of this computer.
  case notOwn(String)
  /// A name that no folder can have.
  case unusableVehicleName(String)
  /// The vehicle's file has no folder of its own.
  case looseFile(String)
  /// A vehicle file to be imported names a file outside its folder.
  case outside(String, folder: String)

  package var exitStatus: ExitStatus {
    switch self {
    case .noHome: .configuration
    case .notEnrolled, .lostKey: .noInput
    case .otherDevice, .older, .otherOperator, .notSigned, .outdated, .outside: .badData
    case .nameTaken, .knownAs, .unusableVehicleName: .usage
    case .looseFile: .failure
    case .notOwn: .noPermission
    }
  }

  package var description: String {
    switch self {
    case .noHome: "no folder for stepctl's files: HOME is not set"
    case .notEnrolled: "this computer has no device key"
    case .lostKey(let path): "cannot open \(path): No such file or directory"
    case .otherDevice(let asked, let own):
      "this access is for the device \(asked.grouped), but this device is \(own.grouped)"
    case .older(let path): "this access is older than the one in \(path)"
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
    case .notOwn(let path): "\(path) is for all users of this computer"
    case .unusableVehicleName(let name):
      "--name \"\(name)\": a name has 1 to 64 letters, digits, \".\", \"-\" and \"_\"; it starts with no \".\" and ends with no \".toml\""
    case .looseFile(let path):
      "\(path) is this vehicle's file; move it to \(path.dropLast(5))/vehicle.toml, and import again"
    case .outside(let path, let folder):
      "\(path) is not in \(folder), where the vehicle file is; put the files that belong together into one folder"
    }
  }

  package var hint: String? {
    switch self {
    case .noHome: "set HOME, or XDG_CONFIG_HOME"
    case .notEnrolled: "run `stepctl enroll`, and give your operator what it prints"
    case .lostKey:
      "this device's key is lost: enroll again (`stepctl enroll --output request`), and tell your operator"
    case .otherDevice: "import it on the device that asked, or give your operator what `stepctl enroll` prints here"
    case .notOwn: "whoever administers this computer can remove it"
    case .older: "ask your operator for the current one"
    case .otherOperator, .notSigned, .outdated, .nameTaken, .knownAs, .unusableVehicleName, .looseFile, .outside: nil
    }
  }
}
