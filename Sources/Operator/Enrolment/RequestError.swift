package import Domain
package import StepProtocol

/// Why a device's request is not granted, or an access file not accepted.
package enum RequestError: Failure, Equatable {
  case malformed(ProtocolError)
  /// The certificate request asks for a name that is not a rider's.
  case foreignName
  case unusable(String)
  /// This computer has no device key yet.
  case notEnrolled
  /// The access file is for another device.
  case otherDevice(asked: Thumbprint, own: Thumbprint)
  /// The new access file was made before the installed one.
  case older(String)
  /// The name in the request cannot be a rider's.
  case unusableName(String)
  /// The name in the request belongs to another device.
  case nameTaken(String)
  /// A part of the fleet server's answer to a new vehicle is missing or cannot be used.
  case unusableAdmission(String)

  package var exitStatus: ExitStatus {
    switch self {
    case .malformed, .foreignName, .unusable, .otherDevice, .older, .unusableAdmission: .badData
    case .notEnrolled: .noInput
    case .unusableName, .nameTaken: .usage
    }
  }

  package var description: String {
    switch self {
    case .malformed(let error): "not a device's request, or a damaged one: \(error)"
    case .foreignName: "the request asks for a certificate with another name than `rider`"
    case .unusable(let reason): reason
    case .notEnrolled: "this computer has no device key"
    case .otherDevice(let asked, let own):
      "this access is for the device \(asked.grouped), but this device is \(own.grouped)"
    case .older(let path): "this access is older than the one in \(path)"
    case .unusableName(let name): "\(name): not a rider's name"
    case .nameTaken(let name): "\(name) has another device already"
    case .unusableAdmission(let part): "the server's answer to the vehicle is not understood: \(part)"
    }
  }

  package var hint: String? {
    switch self {
    case .malformed: "ask the rider for the text that `stepctl enroll` prints"
    case .foreignName, .unusable: "ask the rider to run `stepctl enroll` again"
    case .notEnrolled: "run `stepctl enroll`, and give your operator what it prints"
    case .otherDevice: "import it on the device that asked, or give your operator what `stepctl enroll` prints here"
    case .older: "ask your operator for the current one"
    case .unusableName: "use --rider: letters, digits, dots, hyphens and underscores"
    case .nameTaken(let name): "use --rider \(name) if the device is the same rider's, or --rider with another name"
    case .unusableAdmission: "nothing was written; the operator has to give another code"
    }
  }
}
